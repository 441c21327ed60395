"""The member's side of a classic group, answer by answer."""

from __future__ import annotations

import pytest

from barnabas.client.errors import GroupRefused
from barnabas.client.group.membership import Membership, Outcome, Phase
from barnabas.client.partitions.assignors import ASSIGNORS
from barnabas.client.partitions.protocol import (
    NO_GENERATION,
    Subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupResponse

PLACES = (TopicPartition("a", 0), TopicPartition("a", 1))


def make(*names: str, instance_id: str | None = None) -> Membership:
    return Membership(
        group_id="g",
        instance_id=instance_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        assignors=[ASSIGNORS[name] for name in names or ("range",)],
    )


def accepted(*, generation: int = 1, leader: str = "m", protocol: str = "range") -> JoinGroupResponse:
    member = JoinGroupResponse.JoinGroupResponseMember(
        member_id="m", metadata=encode_subscription(Subscription(("a",)))
    )
    return JoinGroupResponse(
        generation_id=generation, leader=leader, member_id="m", protocol_name=protocol, members=[member]
    )


def assigned(*places: TopicPartition) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=encode_assignment(places))


def stable(*names: str, places: tuple[TopicPartition, ...] = PLACES) -> Membership:
    member = make(*names)
    member.join(["a"])
    member.joined(accepted(protocol=names[0] if names else "range"))
    member.synced(assigned(*places))
    assert member.phase is Phase.STABLE
    return member


def test_a_member_joins_under_the_id_that_it_is_given() -> None:
    member = make()
    assert member.join(["a"]).member_id == ""
    answer = JoinGroupResponse(error_code=errors.MEMBER_ID_REQUIRED.code, member_id="m")
    assert member.joined(answer) is Outcome.JOIN_AGAIN
    assert member.join(["a"]).member_id == "m"
    assert member.joined(accepted()) is Outcome.GO_ON
    assert member.phase is Phase.SYNCING
    request = member.sync(member.assignments(accepted(), {"a": 2}))
    assert [entry.member_id for entry in request.assignments] == ["m"]
    assert member.synced(assigned(*PLACES)) is Outcome.GO_ON
    assert member.owned == PLACES


def test_only_the_leader_assigns_and_not_when_told_to_skip_it() -> None:
    member = make()
    member.join(["a"])
    answer = accepted(leader="other")
    member.joined(answer)
    assert member.assignments(answer, {"a": 2}) == []
    member = make()
    member.join(["a"])
    answer = accepted()
    answer.skip_assignment = True
    member.joined(answer)
    assert member.assignments(answer, {"a": 2}) == []


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        (errors.COORDINATOR_NOT_AVAILABLE, Outcome.FIND_COORDINATOR),
        (errors.NOT_COORDINATOR, Outcome.FIND_COORDINATOR),
        (errors.COORDINATOR_LOAD_IN_PROGRESS, Outcome.RETRY),
        (errors.REBALANCE_IN_PROGRESS, Outcome.JOIN_AGAIN),
        (errors.UNKNOWN_MEMBER_ID, Outcome.JOIN_AGAIN),
        (errors.ILLEGAL_GENERATION, Outcome.JOIN_AGAIN),
    ],
)
def test_what_passes_leads_to_another_join(row: WireError, outcome: Outcome) -> None:
    joining = make()
    joining.join(["a"])
    assert joining.joined(JoinGroupResponse(error_code=row.code)) is outcome
    assert joining.needs_join
    syncing = make()
    syncing.join(["a"])
    syncing.joined(accepted())
    assert syncing.synced(SyncGroupResponse(error_code=row.code)) is outcome
    assert syncing.needs_join
    assert syncing.member_id == ("" if row is errors.UNKNOWN_MEMBER_ID else "m")


@pytest.mark.parametrize("row", [errors.FENCED_INSTANCE_ID, errors.INCONSISTENT_GROUP_PROTOCOL])
def test_what_does_not_pass_is_raised(row: WireError) -> None:
    member = make()
    member.join(["a"])
    with pytest.raises(GroupRefused) as refused:
        member.joined(JoinGroupResponse(error_code=row.code))
    assert refused.value.error is row
    assert member.phase is Phase.FAILED
    assert member.leave() is None


def test_a_heartbeat_tells_of_a_rebalance_and_nothing_is_lost() -> None:
    member = stable()
    assert member.told(errors.REBALANCE_IN_PROGRESS, generation=1) is Outcome.JOIN_AGAIN
    assert member.needs_join
    assert member.is_member
    assert not member.is_lost
    assert member.owned == PLACES


def test_a_member_that_was_given_up_has_lost_what_it_had() -> None:
    member = stable()
    member.told(errors.UNKNOWN_MEMBER_ID, generation=1)
    assert member.is_lost
    assert (member.member_id, member.generation, member.owned) == ("", NO_GENERATION, ())
    assert member.former == (1, "m")
    member.left()  # for another reason, before anybody was told of the first
    assert member.former == (1, "m")


def test_also_one_that_the_group_was_waiting_for() -> None:
    member = stable()
    member.told(errors.REBALANCE_IN_PROGRESS, generation=1)
    member.told(errors.UNKNOWN_MEMBER_ID, generation=1)
    assert member.is_lost


def test_what_a_commit_hears_while_a_join_is_under_way_changes_nothing() -> None:
    member = stable("cooperative-sticky")
    member.rejoin("partitions were given up")
    member.join(["a"])
    for row in (errors.ILLEGAL_GENERATION, errors.REBALANCE_IN_PROGRESS, errors.UNKNOWN_MEMBER_ID):
        assert member.told(row, generation=1) is Outcome.GO_ON
        assert (member.phase, member.is_lost, member.owned) == (Phase.JOINING, False, PLACES)


def test_a_late_answer_of_an_earlier_generation_changes_nothing() -> None:
    member = stable()
    assert member.told(errors.ILLEGAL_GENERATION, generation=0) is Outcome.GO_ON
    assert member.phase is Phase.STABLE


def test_a_cooperative_member_says_what_it_keeps() -> None:
    member = stable("cooperative-sticky")
    assert member.is_cooperative
    member.rejoin("partitions were given up")
    member.revoked(PLACES[:1])
    (protocol,) = member.join(["a"]).protocols
    subscription = decode_subscription(protocol.metadata)
    assert subscription.owned == PLACES[1:]
    assert subscription.generation == 1


def test_one_eager_assignor_makes_the_member_eager() -> None:
    assert not make("range", "cooperative-sticky").is_cooperative


def test_a_sticky_member_remembers_what_it_gave_up() -> None:
    member = stable("sticky")
    member.revoked(PLACES)
    member.rejoin("the subscription changed")
    (protocol,) = member.join(["a"]).protocols
    subscription = decode_subscription(protocol.metadata)
    assert subscription.owned == ()
    assert ASSIGNORS["sticky"].claim(subscription) == (PLACES, 1)  # type: ignore[attr-defined]


def test_a_static_member_does_not_leave() -> None:
    member = make(instance_id="i")
    member.join(["a"])
    member.joined(accepted())
    assert member.leave() is None
    dynamic = stable()
    identity = dynamic.leave()
    assert identity is not None
    assert identity.member_id == "m"
