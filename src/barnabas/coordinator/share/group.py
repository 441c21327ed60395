"""A share group: its members, its epochs, the target of each member, and the share-partitions that have state.

Durable state changes only through records (``apply_*``). The steps that write the records are in
:mod:`barnabas.coordinator.share.groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, NamedTuple

from barnabas.coordinator.consumer.assignors import Partitions
from barnabas.coordinator.consumer.group import EMPTY, FIRST_EPOCH, STABLE
from barnabas.coordinator.consumer.member import MemberState, topic_names
from barnabas.coordinator.share.records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
)
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid

PROTOCOL_TYPE: Final = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareMember:
    """A member never changes; a step makes a new one, which the member's two records describe."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()  # sorted, each once
    member_epoch: int = 0
    previous_member_epoch: int = 0
    assigned: Partitions = field(default_factory=dict)

    def metadata_value(self) -> ShareGroupMemberMetadataValue:
        return ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.subscribed_topic_names),
        )

    def current_value(self) -> ShareGroupCurrentMemberAssignmentValue:
        row = ShareGroupCurrentMemberAssignmentValue.TopicPartitions
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=int(MemberState.STABLE),
            assigned_partitions=[
                row(topic_id=topic, partitions=sorted(self.assigned[topic])) for topic in sorted(self.assigned)
            ],
        )


class TopicState(NamedTuple):
    """Partitions of one topic whose share state is being created, or exists."""

    name: str
    partitions: frozenset[int]


TopicStates = Mapping[Uuid, TopicState]
NO_TOPICS: Final[TopicStates] = {}
NO_NAMES: Final[Mapping[Uuid, str]] = {}


class StatePartitions(NamedTuple):
    """The share-partitions of a group that have state with the share coordinator, or are about to."""

    initializing: TopicStates = NO_TOPICS
    initialized: TopicStates = NO_TOPICS
    deleting: Mapping[Uuid, str] = NO_NAMES  # names by topic id

    def value(self) -> ShareGroupStatePartitionMetadataValue:
        value = ShareGroupStatePartitionMetadataValue
        return value(
            initializing_topics=_rows(self.initializing),
            initialized_topics=_rows(self.initialized),
            deleting_topics=[
                value.TopicInfo(topic_id=topic, topic_name=self.deleting[topic]) for topic in sorted(self.deleting)
            ],
        )

    @classmethod
    def of(cls, value: ShareGroupStatePartitionMetadataValue) -> StatePartitions:
        return cls(
            _states(value.initializing_topics),
            _states(value.initialized_topics),
            {Uuid(row.topic_id): row.topic_name for row in value.deleting_topics},
        )

    def begun(self, topics: TopicStates) -> StatePartitions:
        """With more share-partitions whose state is being created."""
        deleting = {topic: name for topic, name in self.deleting.items() if topic not in topics}
        return self._replace(initializing=joined(self.initializing, topics), deleting=deleting)

    def finished(self, topics: TopicStates) -> StatePartitions:
        return self._replace(
            initializing=without(self.initializing, topics), initialized=joined(self.initialized, topics)
        )

    def abandoned(self, topics: TopicStates) -> StatePartitions:
        return self._replace(initializing=without(self.initializing, topics))

    def begun_deleting(self, topics: Iterable[Uuid]) -> StatePartitions:
        known = {**self.initializing, **self.initialized}
        gone = set(topics)
        return StatePartitions(
            {topic: state for topic, state in self.initializing.items() if topic not in gone},
            {topic: state for topic, state in self.initialized.items() if topic not in gone},
            {**self.deleting, **{topic: known[topic].name for topic in gone if topic in known}},
        )

    def forgotten(self, topics: Iterable[Uuid]) -> StatePartitions:
        """Without topics whose state is deleted."""
        gone = set(topics)
        return StatePartitions(
            {topic: state for topic, state in self.initializing.items() if topic not in gone},
            {topic: state for topic, state in self.initialized.items() if topic not in gone},
            {topic: name for topic, name in self.deleting.items() if topic not in gone},
        )


def joined(one: TopicStates, other: TopicStates) -> TopicStates:
    result = dict(one)
    for topic, state in other.items():
        known = result.get(topic)
        result[topic] = state if known is None else TopicState(state.name, known.partitions | state.partitions)
    return result


def without(one: TopicStates, other: TopicStates) -> TopicStates:
    result = {}
    for topic, state in one.items():
        partitions = state.partitions - (other[topic].partitions if topic in other else frozenset())
        if partitions:
            result[topic] = TopicState(state.name, partitions)
    return result


class ShareGroup:
    group_type: ClassVar = "share"
    protocol_type: ClassVar = PROTOCOL_TYPE

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.states = StatePartitions()
        # Not in the log: built up again after a restart.
        self.topics_version = -1  # version of the topics that the group's hash was last compared with
        self.initializing_since_ms: dict[Uuid, int] = {}  # when the state of a topic was last begun to be created

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def may_expire(self) -> bool:
        return False  # its offsets are kept by the share coordinator, without a retention time

    @property
    def state_name(self) -> str:
        return STABLE if self.members else EMPTY

    def member(self, member_id: str) -> ShareMember:
        found = self.members.get(member_id)
        if found is None:
            raise ApiError(errors.UNKNOWN_MEMBER_ID, f"group {self.group_id!r} has no member {member_id!r}")
        return found

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        raise ApiError(errors.GROUP_ID_NOT_FOUND, f"{self.group_id!r} is a share group")

    def check_delete(self) -> None:
        if self.members:
            raise ApiError(errors.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        raise ApiError(errors.GROUP_ID_NOT_FOUND, f"{self.group_id!r} is a share group")

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.subscribed_topic_names for member in self.members.values())

    def offsets_unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        return None

    # --- records --------------------------------------------------------------------------------------------------

    def apply_group(self, value: ShareGroupMetadataValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def apply_member(self, member_id: str, value: ShareGroupMemberMetadataValue | None) -> None:
        if value is None:
            self.members.pop(member_id, None)
            return
        known = self.members.get(member_id) or ShareMember(member_id=member_id)
        self.members[member_id] = replace(
            known,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=topic_names(value.subscribed_topic_names),
        )

    def apply_target(self, value: ShareGroupTargetAssignmentMetadataValue | None) -> None:
        self.assignment_epoch = -1 if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def apply_target_member(self, member_id: str, value: ShareGroupTargetAssignmentMemberValue | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = {Uuid(row.topic_id): frozenset(row.partitions) for row in value.topic_partitions}

    def apply_current(self, member_id: str, value: ShareGroupCurrentMemberAssignmentValue | None) -> None:
        known = self.members.get(member_id)
        if value is not None:
            self.members[member_id] = replace(
                known or ShareMember(member_id=member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                assigned={Uuid(row.topic_id): frozenset(row.partitions) for row in value.assigned_partitions},
            )
        elif known is not None:
            self.members[member_id] = replace(known, member_epoch=0, previous_member_epoch=0, assigned={})

    def apply_states(self, value: ShareGroupStatePartitionMetadataValue | None) -> None:
        self.states = StatePartitions() if value is None else StatePartitions.of(value)


def _rows(topics: TopicStates) -> list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
    row = ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo
    return [
        row(topic_id=topic, topic_name=topics[topic].name, partitions=sorted(topics[topic].partitions))
        for topic in sorted(topics)
    ]


def _states(rows: Iterable[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]) -> TopicStates:
    return {Uuid(row.topic_id): TopicState(row.topic_name, frozenset(row.partitions)) for row in rows}
