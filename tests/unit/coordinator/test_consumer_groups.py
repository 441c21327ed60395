"""Groups of the consumer protocol, as transcripts: what members send, what they hear, and how time passes."""

from __future__ import annotations

import pytest
from consumer_play import Play, topic_id

from barnabas.coordinator.consumer.member import MemberState
from barnabas.model import errors
from barnabas.model.errors import ApiError

FENCED = errors.FENCED_MEMBER_EPOCH.code
UNKNOWN = errors.UNKNOWN_MEMBER_ID.code
INVALID = errors.INVALID_REQUEST.code


def test_the_first_member_gets_everything_at_once():
    play = Play({"t": 3})
    assert play.join("a", "t") == (1, {"t": [0, 1, 2]})
    assert play.group.state == "Stable"
    assert play.ask("a", 1, {"t": [0, 1, 2]}) == (1, None)


def test_a_second_member_gets_its_share_once_the_first_has_given_it_up():
    play = Play({"t": 4})
    assert play.join("a", "t") == (1, {"t": [0, 1, 2, 3]})
    assert play.join("b", "t") == (2, {})
    assert play.group.state == "Reconciling"
    assert play.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    # a hears that it is to keep two, stays in its epoch and goes on reporting what it still has.
    assert play.ask("a", 1, None) == (1, {"t": [0, 1]})
    assert play.ask("a", 1, {"t": [0, 1, 2, 3]}) == (1, None)
    assert play.ask("b", 2, None) == (2, None)
    # Having said that it gave them up, it gets into the next epoch, and b gets them.
    assert play.ask("a", 1, {"t": [0, 1]}) == (2, None)
    assert play.ask("b", 2, {}) == (2, {"t": [2, 3]})
    assert play.group.state == "Stable"


def test_what_a_leaver_had_goes_to_the_rest():
    play = Play({"t": 4})
    play.join("a", "t")
    play.join("b", "t")
    play.ask("a", 1, {"t": [0, 1]})
    play.ask("b", 2, {})
    assert play.ask("b", -1) == (-1, None)
    assert play.group.state == "Assigning"
    assert play.ask("a", 2, {"t": [0, 1]}) == (3, {"t": [0, 1, 2, 3]})
    assert play.ask("a", -1) == (-1, None)
    assert play.group.state == "Empty"
    assert not play.timers


def test_a_member_without_heartbeats_is_removed_when_its_session_ends():
    play = Play({"t": 2})
    play.join("a", "t")
    play.join("b", "t")
    assert play.ask("a", 1, {"t": [0]}) == (2, {"t": [0]})
    play.advance(44_999)
    assert play.ask("a", 2) == (2, None)
    play.advance(1)
    assert play.ask("b", 2) == UNKNOWN
    assert play.ask("a", 2, {"t": [0]}) == (3, {"t": [0, 1]})


def test_a_member_that_does_not_give_up_in_time_is_removed():
    play = Play({"t": 2})
    play.join("a", "t", rebalance_timeout_ms=20_000)
    play.join("b", "t")
    for _ in range(4):
        play.ask("a", 1, {"t": [0, 1]})
        play.ask("b", 2)
        play.advance(5_000)
    assert play.ask("a", 1, {"t": [0, 1]}) == UNKNOWN
    assert play.ask("b", 2) == (3, {"t": [0, 1]})


def test_a_member_that_gave_up_in_time_is_not_removed():
    play = Play({"t": 2})
    play.join("a", "t", rebalance_timeout_ms=20_000)
    play.join("b", "t")
    assert play.ask("a", 1, None) == (1, {"t": [0]})
    assert play.ask("a", 1, {"t": [0]}) == (2, None)
    play.advance(44_000)
    assert set(play.group.members) == {"a", "b"}


@pytest.mark.parametrize(
    ("epoch", "has", "answer"),
    [
        (2, {"t": [0]}, (2, None)),
        (1, {"t": [0]}, (2, None)),  # the answer that moved it on was lost
        (1, {"t": [0, 1]}, FENCED),  # but then it has no more than it was left
        (1, None, FENCED),
        (3, {"t": [0]}, FENCED),
        (0, {}, INVALID),  # who joins must say what it wants
    ],
)
def test_a_member_out_of_step_is_fenced(epoch, has, answer):
    play = Play({"t": 2})
    play.join("a", "t")
    play.join("b", "t")
    play.ask("a", 1, {"t": [0]})
    assert play.ask("a", epoch, has) == answer


def test_a_member_may_start_again_under_its_own_id():
    play = Play({"t": 2})
    play.join("a", "t")
    assert play.join("a", "t") == (1, {"t": [0, 1]})


def test_a_full_heartbeat_hears_everything_again():
    play = Play({"t": 2})
    play.join("a", "t")
    full = {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 60_000}
    assert play.ask("a", 1, {"t": [0, 1]}, **full) == (1, {"t": [0, 1]})


def test_nobody_knows_a_member_of_no_group():
    play = Play({"t": 2})
    assert play.ask("a", 1) == errors.GROUP_ID_NOT_FOUND.code
    assert play.ask("a", -1) == errors.GROUP_ID_NOT_FOUND.code
    play.join("a", "t")
    assert play.ask("b", 1) == UNKNOWN
    assert play.ask("b", -1) == UNKNOWN


@pytest.mark.parametrize(
    ("member", "epoch", "has", "fields"),
    [
        ("", 0, {}, {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 1}),
        ("", 1, {}, {"version": 0}),
        ("a", 0, {}, {"subscribed_topic_names": ["t"]}),
        ("a", 0, None, {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 1}),
        ("a", 0, {"t": [0]}, {"subscribed_topic_names": ["t"], "rebalance_timeout_ms": 1}),
        ("a", 0, {}, {"rebalance_timeout_ms": 1}),
        ("a", -2, None, {}),
        ("a", -3, None, {}),
        ("a", 1, None, {"instance_id": ""}),
        ("a", 1, None, {"rack_id": " "}),
    ],
)
def test_what_makes_no_sense_is_refused(member, epoch, has, fields):
    assert Play({"t": 2}).ask(member, epoch, has, **fields) == INVALID


def test_in_version_0_the_broker_makes_the_id():
    play = Play({"t": 2})
    assert play.join("", "t", version=0) == (1, {"t": [0, 1]})
    assert list(play.group.members) == ["made-0"]


def test_members_choose_among_the_assignors_that_there_are():
    play = Play({"t": 4, "u": 4})
    assert play.join("a", "t", "u", server_assignor="range") == (1, {"t": [0, 1, 2, 3], "u": [0, 1, 2, 3]})
    play.join("b", "t", "u", server_assignor="range")
    assert play.ask("a", 1) == (1, {"t": [0, 1], "u": [0, 1]})
    assert play.join("c", "t", server_assignor="cheapest") == errors.UNSUPPORTED_ASSIGNOR.code


def test_a_group_takes_no_more_members_than_it_may_have():
    play = Play({"t": 4}, size_max=2)
    play.join("a", "t")
    play.join("b", "t")
    assert play.join("c", "t") == errors.GROUP_MAX_SIZE_REACHED.code
    assert play.join("b", "t") == (2, {})


def test_a_member_that_wants_other_topics_gives_up_what_it_no_longer_wants():
    play = Play({"t": 2, "u": 2})
    play.join("a", "t")
    assert play.ask("a", 1, {"t": [0, 1]}, subscribed_topic_names=["u"]) == (1, {})
    assert play.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert play.ask("a", 1, {}) == (2, {"u": [0, 1]})


def test_null_fields_leave_things_as_they_were():
    play = Play({"t": 2})
    play.join("a", "t", rack_id="r1", server_assignor="range")
    play.ask("a", 1, {"t": [0, 1]})
    member = play.group.members["a"]
    assert (member.rack_id, member.server_assignor, member.subscribed_topic_names) == ("r1", "range", ("t",))
    assert member.rebalance_timeout_ms == 60_000


# --- assignments in quick succession --------------------------------------------------------------------------------


def test_members_that_join_within_the_interval_are_assigned_together():
    play = Play({"t": 4}, assignment_interval_ms=1_000)
    assert play.join("a", "t") == (1, {"t": [0, 1, 2, 3]})
    play.advance(500)
    assert play.join("b", "t") == (1, {})
    assert play.join("c", "t") == (1, {})
    assert play.group.state == "Assigning"
    play.advance(500)
    assert play.ask("a", 1) == (1, {"t": [0, 1]})
    assert play.group.assignment_epoch == 3


# --- static members -------------------------------------------------------------------------------------------------


def test_a_static_member_that_comes_back_gets_what_it_had():
    play = Play({"t": 2})
    play.join("a", "t", instance_id="one")
    play.join("b", "t", instance_id="two")
    play.ask("a", 1, {"t": [0]}, instance_id="one")
    assert play.ask("b", 2, {}, instance_id="two") == (2, {"t": [1]})
    assert play.ask("b", -2, instance_id="two") == (-2, None)
    assert play.ask("a", 2, {"t": [0]}, instance_id="one") == (2, None)
    assert play.join("b2", "t", instance_id="two") == (2, {"t": [1]})
    assert play.ask("b", 2, {"t": [1]}, instance_id="two") == errors.FENCED_INSTANCE_ID.code
    assert play.group.epoch == 2
    assert set(play.group.members) == {"a", "b2"}


def test_a_static_member_that_stays_away_loses_its_place():
    play = Play({"t": 2})
    play.join("a", "t", instance_id="one")
    play.ask("a", -2, instance_id="one")
    play.advance(45_000)
    assert play.group.state == "Empty"
    assert play.join("b", "t", instance_id="one") == (3, {"t": [0, 1]})


def test_an_instance_in_use_is_not_given_away():
    play = Play({"t": 2})
    play.join("a", "t", instance_id="one")
    assert play.join("b", "t", instance_id="one") == errors.UNRELEASED_INSTANCE_ID.code
    assert play.ask("b", -1, instance_id="one") == errors.FENCED_INSTANCE_ID.code
    assert play.ask("b", 1, instance_id="one") == errors.FENCED_INSTANCE_ID.code
    assert play.ask("a", 1, instance_id="two") == UNKNOWN


def test_a_static_member_that_missed_its_welcome_may_join_again():
    play = Play({"t": 2})
    play.join("a", "t", instance_id="one")
    assert play.join("a", "t", instance_id="one") == (1, {"t": [0, 1]})


# --- commits --------------------------------------------------------------------------------------------------------


def commit(play: Play, member: str, epoch: int, partition: int, **fields):
    try:
        play.group.check_commit(
            member,
            fields.get("instance_id"),
            epoch,
            [(topic_id("t"), partition)],
            is_transactional=fields.get("is_transactional", False),
            version=fields.get("version", 9),
        )
    except ApiError as error:
        return error.error.name
    return None


def test_a_member_commits_in_its_epoch_and_for_what_it_kept_in_an_earlier_one():
    play = Play({"t": 2})
    play.join("a", "t")
    play.join("b", "t")
    play.ask("a", 1, {"t": [0]})
    play.ask("b", 2, {})
    assert commit(play, "a", 2, 0) is None
    assert commit(play, "a", 1, 0) is None  # it has had the partition since then
    assert commit(play, "a", 1, 1) == "STALE_MEMBER_EPOCH"  # that one is with b now
    assert commit(play, "a", 3, 0) == "STALE_MEMBER_EPOCH"
    assert commit(play, "b", 1, 1) == "STALE_MEMBER_EPOCH"
    assert commit(play, "c", 1, 1) == "UNKNOWN_MEMBER_ID"
    assert commit(play, "a", 2, 0, version=8) == "UNSUPPORTED_VERSION"
    assert commit(play, "", -1, 0) == "UNKNOWN_MEMBER_ID"
    assert commit(play, "", -1, 0, is_transactional=True) is None


def test_anybody_commits_to_a_group_without_members():
    play = Play({"t": 2})
    play.join("a", "t")
    play.ask("a", -1)
    assert commit(play, "", -1, 0) is None


# --- restarts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_compacted", [False, True])
def test_another_broker_goes_on_where_this_one_stopped(is_compacted):
    play = Play({"t": 4, "foo-1": 1})
    play.join("a", "t", instance_id="one", server_assignor="range")
    play.join("b", "t", subscribed_topic_regex="foo.*")
    play.ask("a", 1, {"t": [0, 1, 2, 3]})
    before = vars(play.group)
    play.restart(is_compacted=is_compacted)
    after = vars(play.group)
    soft = {"topics_version", "awaited_joins"}
    assert {k: v for k, v in after.items() if k not in soft} == {k: v for k, v in before.items() if k not in soft}
    assert play.ask("a", 1, {"t": [0, 1]}) == (2, None)
    play.advance(44_999)
    assert set(play.group.members) == {"a", "b"}
    play.advance(1)
    assert play.group.state == "Empty"


# --- what is too large ------------------------------------------------------------------------------------------------


def test_a_subscription_that_no_line_could_hold_is_refused():
    play = Play({"t": 1}, step_bytes_max=10_000)
    play.join("a", "t")
    assert play.join("b", *(f"topic-{number}" for number in range(2_000))) == INVALID
    assert play.ask("a", 1, {"t": [0]}) == (1, None)


def test_a_step_that_fits_into_no_batch_is_refused_and_leaves_no_trace():
    play = Play({f"t{number}": 1 for number in range(300)}, step_bytes_max=8_000)
    play.join("a", "t1")
    before = (vars(play.group) | {}, dict(play.timers), len(play.log))
    assert play.join("b", *play.counts) == errors.UNKNOWN_SERVER_ERROR.code
    assert (vars(play.group) | {}, dict(play.timers), len(play.log)) == before
    assert play.ask("a", 1, {"t1": [0]}) == (1, None)
