"""A member of a group of the consumer protocol: what it wants, what it has, and how far it has come.

A member never changes; a step makes a new one, and its two lines in the log say which. How it moves towards what the
group has in mind for it is in :mod:`barnabas.coordinator.consumer.reconciliation`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.coordinator.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from barnabas.model.ids import Uuid

# A member's epoch is also how it says what it wants, in a request and, for a static member that is away, in the log.
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2
NO_TIMEOUT: Final = -1

Owned = Mapping[Uuid, Mapping[int, int]]  # by topic, by partition: the epoch in which the member got it
NOTHING_OWNED: Final[Owned] = {}


class MemberState(enum.IntEnum):
    """What a member waits for, with the numbers of the log."""

    STABLE = 1  # nothing: it has what it is to have in its epoch
    UNREVOKED_PARTITIONS = 2  # it must give up partitions before it gets into the next epoch
    UNRELEASED_PARTITIONS = 3  # partitions that it is to have are still with others
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicMembership:
    """How a member that speaks the classic protocol joined; None in its place for all others."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # name and metadata, the preferred one first

    @property
    def protocol_names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()  # sorted, each once
    subscribed_topic_regex: str = ""  # empty: none
    rebalance_timeout_ms: int = NO_TIMEOUT
    server_assignor: str | None = None
    classic: ClassicMembership | None = None

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    pending_revocation: Owned = field(default_factory=dict)

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    @property
    def subscription(self) -> tuple[tuple[str, ...], str]:
        return self.subscribed_topic_names, self.subscribed_topic_regex

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def in_epoch(self, epoch: int, **changes: Any) -> Member:
        """The member moved on to an epoch; a member that has not heard of it may come back with the one before."""
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch, **changes)

    # --- its lines in the log -------------------------------------------------------------------------------------

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        value = ConsumerGroupMemberMetadataValue
        return value(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.subscribed_topic_names),
            subscribed_topic_regex=self.subscribed_topic_regex or None,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=None
            if self.classic is None
            else value.ClassicMemberMetadata(
                session_timeout_ms=self.classic.session_timeout_ms,
                supported_protocols=[
                    value.ClassicProtocol(name=name, metadata=metadata) for name, metadata in self.classic.protocols
                ],
            ),
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> Member:
        classic = value.classic_member_metadata
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=topic_names(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=None
            if classic is None or not classic.supported_protocols
            else ClassicMembership(
                classic.session_timeout_ms,
                tuple((protocol.name, bytes(protocol.metadata)) for protocol in classic.supported_protocols),
            ),
        )

    def current_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            assigned_partitions=_topic_partitions(self.assigned),
            partitions_pending_revocation=_topic_partitions(self.pending_revocation),
        )

    def with_current(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> Member:
        known = value.state in MemberState.__members__.values()
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=_owned(value.assigned_partitions, value.member_epoch),
            pending_revocation=_owned(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_current(self) -> Member:
        return replace(
            self,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            state=MemberState.STABLE,
            assigned=NOTHING_OWNED,
            pending_revocation=NOTHING_OWNED,
        )


def topic_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def pairs(owned: Owned) -> Iterable[tuple[Uuid, int]]:
    return ((topic, partition) for topic, partitions in owned.items() for partition in partitions)


def _topic_partitions(owned: Owned) -> list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]:
    return [
        ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
            topic_id=topic,
            partitions=sorted(owned[topic]),
            assignment_epochs=[owned[topic][partition] for partition in sorted(owned[topic])],
        )
        for topic in sorted(owned)
    ]


def _owned(
    entries: Iterable[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], member_epoch: int
) -> dict[Uuid, dict[int, int]]:
    """Lines from before Kafka 4.3 have no epochs of their own: the member's stands in, which lets no commit pass."""
    return {
        Uuid(entry.topic_id): dict(
            zip(entry.partitions, entry.assignment_epochs or [member_epoch] * len(entry.partitions), strict=True)
        )
        for entry in entries
    }
