"""Both protocols in one group, as transcripts: classic members among the others, and groups that change their kind."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import pytest
from consumer_play import GROUP, Play

from barnabas.coordinator.classic_group import ClassicGroup, GroupState
from barnabas.coordinator.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer_group_settings import MigrationPolicy
from barnabas.coordinator.embedded_protocol import version_of
from barnabas.coordinator.group_requests import GroupRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.message import decode, encode
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest

REBALANCE = errors.REBALANCE_IN_PROGRESS.code
SESSION_MS = 10_000
VERSION = 1


def subscription(names: list[str], owned: Mapping[str, list[int]]) -> bytes:
    entry = ConsumerProtocolSubscription.TopicPartition
    value = ConsumerProtocolSubscription(
        topics=names, owned_partitions=[entry(topic=name, partitions=parts) for name, parts in owned.items()]
    )
    return struct.pack(">h", VERSION) + encode(value, VERSION)


def assignment(owned: Mapping[str, list[int]]) -> bytes:
    entry = ConsumerProtocolAssignment.TopicPartition
    value = ConsumerProtocolAssignment(
        assigned_partitions=[entry(topic=name, partitions=parts) for name, parts in owned.items()]
    )
    return struct.pack(">h", VERSION) + encode(value, VERSION)


class Classic:
    """A member that speaks the classic protocol, cooperatively: it says what it has when it joins."""

    def __init__(self, play: Play, member_id: str = "", instance: str | None = None, protocol: str = "range") -> None:
        self.play = play
        self.member_id = member_id
        self.instance = instance
        self.protocol = protocol
        self.generation = -1
        self.has: dict[str, list[int]] = {}
        self.request_id = 0

    def join(self, *names: str, protocol_type: str = "consumer", version: int = 3, metadata: bytes | None = None):
        message = JoinGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=30_000,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(
                    name=self.protocol, metadata=subscription(list(names), self.has) if metadata is None else metadata
                )
            ],
        )
        answer = self.play.send(message, version)
        self.request_id = self.play._request_id
        return self.heard(answer)

    def heard(self, answer: Any):
        """What a join was answered with: the generation, an error's code, or nothing yet."""
        if answer is None:
            return None
        if isinstance(answer, ApiError):
            return answer.error.code
        if answer.error_code:
            return answer.error_code
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return self.generation

    def late(self):
        """The answer to a join that had to wait."""
        return self.heard(self.play.answers.pop(self.request_id, None))

    def sync(self, **assignments: Mapping[str, list[int]]):
        message = SyncGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance,
            generation_id=self.generation,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=name.replace("_", "-"), assignment=assignment(parts)
                )
                for name, parts in assignments.items()
            ],
        )
        answer = self.play.send(message, 5)
        if isinstance(answer, ApiError):
            return answer.error.code
        if answer.error_code:
            return answer.error_code
        assert version_of(answer.assignment) == VERSION
        value = decode(ConsumerProtocolAssignment, VERSION, answer.assignment, 2)
        self.has = {entry.topic: entry.partitions for entry in value.assigned_partitions}
        return self.has

    def heartbeat(self):
        message = HeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance,
            generation_id=self.generation,
        )
        answer = self.play.send(message, 4)
        return answer.error.code if isinstance(answer, ApiError) else answer.error_code

    def leave(self):
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        answer = self.play.send(LeaveGroupRequest(group_id=GROUP, members=[identity]), 5)
        return answer.members[0].error_code


@pytest.fixture
def play() -> Play:
    return Play({"t": 4})


def settled_pair(play: Play) -> tuple[Classic, Classic]:
    """A stable classic group of two, each with two partitions."""
    one, two = Classic(play), Classic(play)
    assert one.join("t") == 1
    assert one.sync(**{one.member_id.replace("-", "_"): {"t": [0, 1, 2, 3]}}) == {"t": [0, 1, 2, 3]}
    assert two.join("t") is None
    assert one.heartbeat() == REBALANCE
    assert one.join("t") == 2
    assert two.late() == 2
    parts = {one.member_id.replace("-", "_"): {"t": [0, 1]}, two.member_id.replace("-", "_"): {"t": [2, 3]}}
    assert one.sync(**parts) == {"t": [0, 1]}
    assert two.sync() == {"t": [2, 3]}
    return one, two


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
