"""Both protocols in one group, as transcripts: classic members among the others, and groups that change their kind."""

from __future__ import annotations

import pytest
from classic_play import REBALANCE, SESSION_MS, Classic, settled_pair
from consumer_play import GROUP, Play

from barnabas.coordinator.classic.group import ClassicGroup, GroupState
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.settings import MigrationPolicy
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.model import errors
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


@pytest.fixture
def play() -> Play:
    return Play({"t": 4})


def test_the_first_member_with_the_new_protocol_makes_it_a_consumer_group(play):
    one, two = settled_pair(play)
    # The members go on with what they have; the newcomer waits for its share.
    assert play.join("c", "t") == (3, {})
    assert isinstance(play.group, ConsumerGroup)
    assert play.group.classic_count == 2
    assert (play.owned(one.member_id), play.owned(two.member_id)) == ({"t": [0, 1]}, {"t": [2, 3]})
    # One of the two hears that it is to join again, gives up a partition and says so by joining once more.
    members = [one, two]
    for _ in range(4):
        for member in members:
            if member.heartbeat() == REBALANCE:
                assert member.join("t") == 3 or member.generation == 2
                assert member.sync() is not None
        play.ask("c", 3, {})
    assert play.group.state == "Stable"
    assert sorted(len(play.owned(m).get("t", [])) for m in play.group.members) == [1, 1, 2]
    assert one.heartbeat() == two.heartbeat() == 0


def test_when_the_last_with_the_new_protocol_goes_the_rest_is_a_classic_group(play):
    one, two = settled_pair(play)
    play.join("c", "t")
    assert play.ask("c", -1) == (-1, None)
    play.advance(0)
    group = play.table[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state is GroupState.PREPARING
    assert group.generation == 4
    for member in (one, two):
        member.generation = 4
        assert member.heartbeat() == REBALANCE
        member.join("t")
    assert group.state is GroupState.COMPLETING
    play.restart()
    assert isinstance(play.table[GROUP], ClassicGroup)


def test_a_session_that_ends_downgrades_too(play):
    settled_pair(play)
    play.configure(session_timeout_ms=SESSION_MS // 2)
    play.join("c", "t")
    play.advance(SESSION_MS // 2)
    assert isinstance(play.table[GROUP], ClassicGroup)


def test_a_group_of_classic_members_only_is_found_and_downgraded_after_a_restart(play):
    settled_pair(play)
    play.join("c", "t")
    play.perform(play.shard.handle(99, _leave("c"), play.now_ms))
    assert isinstance(play.table[GROUP], ConsumerGroup)  # the step that makes it classic has not run yet
    play.restart()
    play.advance(0)
    assert isinstance(play.table[GROUP], ClassicGroup)


def _leave(member: str):
    return GroupRequest(ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member, member_epoch=-1), 1)


def test_a_classic_member_joins_a_consumer_group(play):
    assert play.join("c", "t") == (1, {"t": [0, 1, 2, 3]})
    one = Classic(play)
    assert one.join("t", version=9) == errors.MEMBER_ID_REQUIRED.code
    one.member_id = "one"
    assert one.join("t", version=9) == 2
    assert one.sync() == {}
    assert one.heartbeat() == 0  # what it is to get is not free yet
    assert play.ask("c", 1, {"t": [0, 1, 2, 3]}) == (1, {"t": [0, 1]})
    assert play.ask("c", 1, {"t": [0, 1]}) == (2, None)
    assert one.heartbeat() == REBALANCE
    assert one.join("t", version=9) == 2
    assert one.sync() == {"t": [2, 3]}
    assert one.heartbeat() == 0
    assert play.group.state == "Stable"
    assert one.leave() == 0
    assert play.ask("c", 2, {"t": [0, 1]}) == (3, {"t": [0, 1, 2, 3]})


def test_a_classic_member_that_gives_up_nothing_is_thrown_out(play):
    play.join("a", "t")
    one = Classic(play, "one")
    one.join("t")
    play.ask("a", 1, {"t": [0, 1]})
    assert one.heartbeat() == REBALANCE
    one.join("t")
    one.sync()
    play.join("b", "t")
    for _ in range(6):
        assert one.heartbeat() == REBALANCE  # told to join, and to give up one of its two
        play.ask("a", 2)
        play.ask("b", 3)
        play.advance(5_000)
    assert one.heartbeat() == errors.UNKNOWN_MEMBER_ID.code


def test_a_classic_member_that_never_syncs_is_thrown_out(play):
    play.join("a", "t")
    one = Classic(play, "one")
    one.join("t")
    for _ in range(6):
        play.ask("a", 1, {"t": [0, 1]})
        play.ask("a", 2, {"t": [0, 1]})
        play.advance(5_000)
        one.generation = play.group.members["one"].member_epoch if "one" in play.group.members else -1
        one.heartbeat()
    assert "one" not in play.group.members


def test_a_classic_member_without_heartbeats_is_thrown_out_after_its_own_session(play):
    play.join("a", "t")
    one = Classic(play, "one")
    one.join("t")
    one.sync()
    play.advance(SESSION_MS)
    assert set(play.group.members) == {"a"}


@pytest.mark.parametrize(
    ("generation", "member_id", "answer"),
    [
        (7, "one", errors.ILLEGAL_GENERATION.code),
        (2, "two", errors.UNKNOWN_MEMBER_ID.code),
        (1, "a", errors.UNKNOWN_MEMBER_ID.code),  # that one does not speak the classic protocol
    ],
)
def test_a_classic_request_that_is_out_of_place_is_refused(play, generation, member_id, answer):
    play.join("a", "t")
    one = Classic(play, "one")
    one.join("t")
    one.generation, one.member_id = generation, member_id
    assert one.heartbeat() == answer
    assert one.sync() == answer


def test_a_static_member_may_change_its_protocol(play):
    play.join("a", "t", instance_id="i1")
    play.join("b", "t", instance_id="i2")
    play.ask("a", 1, {"t": [0, 1]}, instance_id="i1")
    play.ask("b", 2, {}, instance_id="i2")
    # Restarted with the classic protocol it gets its own place back, and what it had.
    one = Classic(play, instance="i1")
    assert one.join("t", version=5) == 2
    assert one.sync() == {"t": [0, 1]}
    assert set(play.group.static_members) == {"i1", "i2"}
    assert play.group.state == "Stable"
    # And with the new one again, although nobody said that the classic one has left.
    assert play.join("a2", "t", instance_id="i1") == (2, {"t": [0, 1]})
    assert play.group.classic_count == 0


def test_when_the_last_static_member_comes_back_as_a_classic_one_so_does_the_group(play):
    play.join("a", "t", instance_id="i1")
    one = Classic(play, instance="i1")
    one.join("t", version=5)
    play.advance(0)
    assert isinstance(play.table[GROUP], ClassicGroup)


def test_a_member_that_takes_up_the_new_protocol_is_no_longer_waited_for_in_the_old_way(play):
    play.join("a", "t")
    one = Classic(play, "one")
    one.join("t")  # and never syncs
    epoch = play.join("one", "t")[0]
    for _ in range(8):
        play.advance(5_000)
        play.ask("a", 1, {"t": [0, 1]})
        play.ask("a", 2, {"t": [0, 1]})
        play.ask("one", epoch)
    assert "one" in play.group.members


def test_whoever_waits_in_the_classic_group_is_sent_to_join_again(play):
    settled_pair(play)
    three = Classic(play)
    assert three.join("t") is None
    assert play.join("c", "t")[1] == {}
    assert three.late() == REBALANCE


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_group_is_not_upgraded_against_the_policy(play, policy):
    settled_pair(play)
    play.configure(migration_policy=policy)
    assert play.join("c", "t") == errors.GROUP_ID_NOT_FOUND.code
    assert isinstance(play.table[GROUP], ClassicGroup)


def test_a_group_is_not_downgraded_against_the_policy(play):
    play.configure(migration_policy=MigrationPolicy.UPGRADE)
    one, two = settled_pair(play)
    play.join("c", "t")
    play.ask("c", -1)
    play.advance(0)
    assert isinstance(play.table[GROUP], ConsumerGroup)
    # It lives on with classic members alone.
    one.join("t")
    assert one.sync() == {"t": [0, 1]}
    assert two.heartbeat() == REBALANCE


def test_without_migration_no_classic_member_gets_in(play):
    play.configure(migration_policy=MigrationPolicy.DISABLED)
    play.join("c", "t")
    assert Classic(play, "one").join("t") == errors.INCONSISTENT_GROUP_PROTOCOL.code


def test_protocols_that_do_not_match_are_refused(play):
    play.join("c", "t")
    inconsistent = errors.INCONSISTENT_GROUP_PROTOCOL.code
    assert Classic(play, "one").join("t", protocol_type="connect") == inconsistent
    assert Classic(play, "one").join("t", metadata=b"\x00") == inconsistent
    assert Classic(play, "one").join("t") == 2
    assert Classic(play, "two", protocol="sticky").join("t") == inconsistent


def test_a_group_that_does_not_consume_cannot_be_upgraded(play):
    worker = Classic(play)
    worker.join("t", protocol_type="connect")
    assert play.join("c", "t") == errors.GROUP_ID_NOT_FOUND.code


def test_a_classic_group_whose_subscriptions_are_unreadable_cannot_be_upgraded(play):
    worker = Classic(play)
    worker.join("t", metadata=b"\x00\x01\x7f")
    assert play.join("c", "t") == errors.GROUP_ID_NOT_FOUND.code


def test_of_an_empty_group_the_first_member_decides_the_protocol(play):
    one = Classic(play)
    one.join("t")
    one.leave()
    assert play.join("c", "t") == (1, {"t": [0, 1, 2, 3]})
    play.ask("c", -1)
    assert isinstance(play.group, ConsumerGroup)
    assert Classic(play).join("t") == 1
    assert isinstance(play.table[GROUP], ClassicGroup)
    play.restart(is_compacted=True)
    # A generation without an assignment is not written, so after the restart there is nothing.
    assert GROUP not in play.table or isinstance(play.table[GROUP], ClassicGroup)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_an_upgraded_group_survives_a_restart(play, is_compacted):
    one, _ = settled_pair(play)
    play.join("c", "t")
    play.restart(is_compacted=is_compacted)
    assert isinstance(play.group, ConsumerGroup)
    assert one.heartbeat() in (0, REBALANCE)
    play.advance(SESSION_MS)
    assert set(play.group.members) == {"c"}
