"""Group protocols are a table: a new one brings its requests, records, timers and checks, and shares the rest."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import pytest

from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.protocol import ConsumerProtocol
from barnabas.coordinator.consumer.settings import ConsumerGroupSettings
from barnabas.coordinator.consumer.step import KnownTopics
from barnabas.coordinator.groups import listing, offset_access, shard
from barnabas.coordinator.groups.offset_access import EXPIRY
from barnabas.coordinator.groups.offset_protocol import FetchOffsets
from barnabas.coordinator.groups.protocol import Commit, Group, GroupProtocol, Handler, Protocols
from barnabas.coordinator.groups.requests import GroupRequest, TopicsDeleted
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Effects
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.message import Message
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest

GROUP = "g"
RECORD = b"\x00\x63" + GROUP.encode()  # key type 99


class QueueRequest(Message, versions=range(1)):
    """What members of the third protocol send."""


class QueueGroup:
    group_type: ClassVar = "queue"
    protocol_type: ClassVar = "queue"
    may_expire: ClassVar = False

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members: dict[str, None] = {}

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        return "Empty" if self.is_empty else "Stable"

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise ApiError(errors.GROUP_ID_NOT_FOUND)

    def check_delete(self) -> None:
        if self.members:
            raise ApiError(errors.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        raise ApiError(errors.GROUP_ID_NOT_FOUND)

    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def offsets_unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms


class QueueProtocol(GroupProtocol):
    group_type = QueueGroup.group_type
    record_types = (99,)
    timer_kinds = ("queue-session",)

    def __init__(self, shard: GroupShard) -> None:
        self._table = shard.groups
        self.seen: list[Any] = []

    @property
    def requests(self) -> Mapping[type[Message], Handler]:
        return {QueueRequest: self._heartbeat}

    def _heartbeat(self, request_id: int, asked: GroupRequest, message: QueueRequest, now_ms: int) -> Effects:
        effects = Effects().record(RECORD, b"")
        return effects.timer(("queue-session", GROUP), now_ms + 10).answer(request_id, "welcome")

    def replay(self, key: bytes, value: bytes | None) -> None:
        group_id = key[2:].decode()
        if value is None:
            del self._table[group_id]
        else:
            self._table[group_id] = QueueGroup(group_id)

    def loaded(self, now_ms: int) -> Effects:
        return Effects().timer(("queue-session", GROUP), now_ms)

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        self.seen.append(key)
        return Effects()

    def check_commit(self, group: Group, commit: Commit, now_ms: int, effects: Effects) -> None:
        raise ApiError(errors.GROUP_ID_NOT_FOUND, "a queue group keeps no offsets of clients")

    def add_tombstones(self, group: Group, effects: Effects) -> None:
        effects.record(RECORD, None)

    def on_topics_deleted(self, names: frozenset[str], effects: Effects) -> None:
        self.seen.append(names)


def make_protocols(shard: GroupShard) -> Protocols:
    classic = ClassicProtocol(shard)
    consumer = ConsumerProtocol(shard, classic, lambda group_id: ConsumerGroupSettings(), KnownTopics())
    return Protocols(classic, [consumer, QueueProtocol(shard)])


def make_shard() -> GroupShard:
    return GroupShard(GroupSettings, make_protocols, tally=GroupTally(lambda: 0))


@pytest.fixture
def with_group() -> GroupShard:
    """A shard that has replayed a group of the third protocol."""
    made = make_shard()
    replay(made, RECORD, b"")
    return made


def replay(where: GroupShard, key: bytes, value: bytes | None) -> None:
    where.replay(key, value, offset=0, producer=None, timestamp_ms=0)


def ask(where: GroupShard, message: Message, version: int = 5) -> Any:
    (answer,) = where.handle(1, GroupRequest(message, version, new_member_id="m"), 0).answers
    return answer.response


def refusal(where: GroupShard, message: Message) -> errors.WireError:
    with pytest.raises(ApiError) as raised:
        ask(where, message)
    return raised.value.error


def test_the_table_has_the_protocols_by_the_type_of_their_groups() -> None:
    assert list(make_shard().protocols) == ["classic", "consumer", "queue"]
    assert ClassicProtocol.group_type == ClassicGroup.group_type
    assert ConsumerProtocol.group_type == ConsumerGroup.group_type


def test_no_record_type_and_no_timer_belongs_to_two_protocols() -> None:
    protocols = make_shard().protocols.values()
    for declared in ("record_types", "timer_kinds"):
        every = [each for protocol in protocols for each in getattr(protocol, declared)]
        assert len(every) == len(set(every)), declared


def test_a_protocol_is_asked_replays_its_records_and_gets_its_timers(with_group: GroupShard) -> None:
    effects = with_group.handle(1, GroupRequest(QueueRequest(), 0), 0)
    assert effects.answers[0].response == "welcome"
    for timer in effects.timers:
        with_group.on_timer(timer.key, 10)
    protocol = with_group.protocols["queue"]
    assert isinstance(protocol, QueueProtocol)
    assert protocol.seen == [("queue-session", GROUP)]
    assert ("queue-session", GROUP) in [timer.key for timer in with_group.loaded(0).timers]


def test_a_protocol_is_told_of_deleted_topics(with_group: GroupShard) -> None:
    with_group.handle(1, TopicsDeleted(frozenset({"t"})), 0)
    protocol = with_group.protocols["queue"]
    assert isinstance(protocol, QueueProtocol)
    assert protocol.seen == [frozenset({"t"})]


def test_groups_of_every_protocol_are_listed_with_their_type(with_group: GroupShard) -> None:
    with_group.default.create("c", 0)
    listed = {(row.group_id, row.group_type, row.group_state) for row in ask(with_group, ListGroupsRequest())}
    assert listed == {(GROUP, "queue", "Empty"), ("c", "classic", "Empty")}
    assert [row.group_id for row in ask(with_group, ListGroupsRequest(types_filter=["Queue"]))] == [GROUP]


def test_a_group_is_deleted_by_the_records_of_its_protocol(with_group: GroupShard) -> None:
    effects = with_group.handle(1, GroupRequest(DeleteGroupsRequest(groups_names=[GROUP]), 2), 0)
    assert effects.records == [(RECORD, None)]
    replay(with_group, RECORD, None)
    assert not with_group.groups


def test_a_protocol_decides_on_offsets_of_its_groups(with_group: GroupShard) -> None:
    assert refusal(with_group, OffsetCommitRequest(group_id=GROUP)) is errors.GROUP_ID_NOT_FOUND
    assert refusal(with_group, OffsetDeleteRequest(group_id=GROUP)) is errors.GROUP_ID_NOT_FOUND
    with pytest.raises(ApiError):
        with_group.handle(1, FetchOffsets(OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP), False), 0)


def test_a_group_that_may_not_expire_stays_without_offsets(with_group: GroupShard) -> None:
    with_group.default.create("c", 0)
    effects = with_group.on_timer((EXPIRY,), 10**12)
    assert RECORD not in [record.key for record in effects.records]
    assert len(effects.records) == 1  # the tombstone of the classic group


def test_requests_of_other_protocols_do_not_find_the_group(with_group: GroupShard) -> None:
    """As Kafka answers them for a share group."""
    join = JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer")
    assert ask(with_group, join).error_code == errors.INCONSISTENT_GROUP_PROTOCOL.code
    assert ask(with_group, SyncGroupRequest(group_id=GROUP)).error_code == errors.UNKNOWN_MEMBER_ID.code
    assert refusal(with_group, HeartbeatRequest(group_id=GROUP)) is errors.UNKNOWN_MEMBER_ID
    assert refusal(with_group, LeaveGroupRequest(group_id=GROUP)) is errors.UNKNOWN_MEMBER_ID
    (described,) = ask(with_group, DescribeGroupsRequest(groups=[GROUP]), 6)
    assert described.error_code == errors.GROUP_ID_NOT_FOUND.code
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert refusal(with_group, heartbeat) is errors.GROUP_ID_NOT_FOUND
    assert isinstance(with_group.groups[GROUP], QueueGroup)


def test_a_record_of_a_protocol_that_is_not_there_is_left_alone() -> None:
    made = GroupShard(GroupSettings, lambda shard: Protocols(ClassicProtocol(shard)), tally=GroupTally(lambda: 0))
    replay(made, RECORD, b"")
    assert not made.groups


@pytest.mark.parametrize("module", [shard, offset_access, listing], ids=lambda module: module.__name__)
def test_what_protocols_share_does_not_look_at_the_class_of_a_group(module: Any) -> None:
    text = inspect.getsource(module)
    assert "ClassicGroup" not in text
    assert "ConsumerGroup" not in text
