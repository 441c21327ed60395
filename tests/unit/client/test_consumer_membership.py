"""The member's side of a group of the consumer protocol, heartbeat by heartbeat."""

from __future__ import annotations

import pytest

from barnabas.client.errors import GroupRefused
from barnabas.client.group.consumer_membership import ConsumerMembership
from barnabas.client.group.membership import Outcome, Phase
from barnabas.client.partitions.protocol import NO_GENERATION
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

ID = Uuid(bytes(range(16)))


def make(instance_id: str | None = None) -> ConsumerMembership:
    return ConsumerMembership(
        group_id="g", member_id="m", instance_id=instance_id, rebalance_timeout_ms=60_000, rack=None
    )


def answer(epoch: int, partitions: list[int] | None = None) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if partitions is not None:
        places = ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=ID, partitions=partitions)
        assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=[places])
    return ConsumerGroupHeartbeatResponse(
        member_id="m", member_epoch=epoch, heartbeat_interval_ms=5_000, assignment=assignment
    )


def stable(instance_id: str | None = None) -> ConsumerMembership:
    member = make(instance_id)
    member.join()
    member.answered(answer(3, [0, 1]))
    member.target = None
    member.applied([TopicPartition("a", 0), TopicPartition("a", 1)])
    member.answered(answer(3))
    return member


def test_the_first_heartbeat_says_everything_and_the_next_only_what_is_new() -> None:
    member = make()
    member.join()
    first = member.heartbeat(["a"], None, {})
    assert (first.member_epoch, first.subscribed_topic_names, first.topic_partitions) == (0, ["a"], [])
    assert member.answered(answer(3, [1, 0])) is Outcome.GO_ON
    assert member.target == {ID: [0, 1]}
    second = member.heartbeat(["a"], None, {})
    assert (second.member_epoch, second.subscribed_topic_names, second.topic_partitions) == (3, None, None)
    member.applied([TopicPartition("a", 0)])
    third = member.heartbeat(["a"], None, {"a": ID})
    assert third.topic_partitions is not None
    assert [(entry.topic_id, entry.partitions) for entry in third.topic_partitions] == [(ID, [0])]


def test_a_heartbeat_without_an_answer_is_said_in_full_again() -> None:
    member = stable()
    member.unanswered()
    assert member.heartbeat(["a"], None, {"a": ID}).subscribed_topic_names == ["a"]


@pytest.mark.parametrize("row", [errors.FENCED_MEMBER_EPOCH, errors.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_has_lost_everything_and_joins_again(row: WireError) -> None:
    member = stable()
    before = member.generation
    assert member.answered(ConsumerGroupHeartbeatResponse(error_code=row.code)) is Outcome.JOIN_AGAIN
    assert member.is_lost
    assert member.former == (before, member.member_id)
    assert member.needs_join
    assert (member.owned, member.generation) == ((), NO_GENERATION)


def test_what_does_not_pass_is_raised() -> None:
    member = stable()
    refusal = ConsumerGroupHeartbeatResponse(error_code=errors.UNSUPPORTED_ASSIGNOR.code, error_message="no such one")
    with pytest.raises(GroupRefused, match="no such one"):
        member.answered(refusal)
    assert member.phase is Phase.FAILED
    assert member.leave() is None


def test_a_commit_of_an_earlier_epoch_changes_nothing() -> None:
    member = stable()
    assert member.told(errors.UNKNOWN_MEMBER_ID, generation=2) is Outcome.GO_ON
    assert member.is_member
    assert member.told(errors.NOT_COORDINATOR, generation=3) is Outcome.FIND_COORDINATOR


def test_a_static_member_keeps_its_place_when_it_leaves() -> None:
    dynamic, static = stable().leave(), stable("i").leave()
    assert dynamic is not None
    assert static is not None
    assert (dynamic.member_epoch, static.member_epoch) == (-1, -2)
