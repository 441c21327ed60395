"""A group of the consumer protocol: its members, its epochs, what each member is to have and what each has.

Everything that lasts is changed by lines of the log and by nothing else (``apply_*``); what is derived from it, who has
which partition above all, is kept beside it. The steps that write the lines are in
:mod:`barnabas.coordinator.consumer.groups`; the checks of commits and the answers to tools only read.

States, all derived::

    Empty        no members
    Assigning    the group's epoch is ahead of the target's: a target is still to be computed
    Reconciling  some member has not arrived at the target yet
    Stable       all have
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import ClassVar, Final

from barnabas.coordinator.consumer.assignors import NO_PARTITIONS, Partitions
from barnabas.coordinator.consumer.member import Member, pairs
from barnabas.coordinator.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from barnabas.coordinator.consumer.subscriptions import ResolvedPattern, subscribed_names
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid

EMPTY: Final = "Empty"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"
PROTOCOL_TYPE: Final = "consumer"
FIRST_EPOCH: Final = 1  # of a group without members; the first one to join makes it 2, as in Kafka 4.3

COMMIT_VERSION_MIN: Final = 9  # of OffsetCommit, for members of this protocol: older ones cannot say STALE_MEMBER_EPOCH


class ConsumerGroup:
    group_type: ClassVar = "consumer"
    protocol_type: ClassVar = PROTOCOL_TYPE

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.patterns: dict[str, ResolvedPattern] = {}
        self.static_members: dict[str, str] = {}  # by instance id
        self._owners: dict[tuple[Uuid, int], str] = {}
        # What does not last: it is built up again after a restart.
        self.topics_version = -1  # of the topics that the group's hash was last compared with
        self.rebalance_epochs: dict[str, int] = {}  # by member: the epoch that it is to leave before its timer fires
        self.awaited_joins: set[str] = set()  # classic members that were told to join again

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def may_expire(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        return self.state

    @property
    def state(self) -> str:
        if not self.members:
            return EMPTY
        if self.epoch > self.assignment_epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    def member(self, member_id: str) -> Member:
        found = self.members.get(member_id)
        if found is None:
            raise ApiError(errors.UNKNOWN_MEMBER_ID, f"group {self.group_id!r} has no member {member_id!r}")
        return found

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    def target_of(self, member: Member) -> Partitions:
        """What the member is to have; a static member that has just come back gets what its predecessor was to."""
        member_id = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id, member_id)
        return self.targets.get(member_id, NO_PARTITIONS)

    def is_taken(self, topic_id: Uuid, partition: int) -> bool:
        return (topic_id, partition) in self._owners

    def owner_of(self, topic_id: Uuid, partition: int) -> str | None:
        return self._owners.get((topic_id, partition))

    def others(self, member: Member) -> Iterable[Member]:
        """All members but this one and the one that it takes the place of."""
        predecessor = self.static_members.get(member.instance_id) if member.instance_id is not None else None
        gone = (member.member_id, predecessor)
        return (other for member_id, other in self.members.items() if member_id not in gone)

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in subscribed_names({member.subscription for member in self.members.values()}, self.patterns)

    def preferred_assignor(self, members: Iterable[Member]) -> str | None:
        """The assignor that most members ask for, if any does."""
        counts = Counter(member.server_assignor for member in members if member.server_assignor is not None)
        return min(counts, key=lambda name: (-counts[name], name), default=None)

    # --- classic members ------------------------------------------------------------------------------------------

    @property
    def classic_count(self) -> int:
        return sum(member.uses_classic_protocol for member in self.members.values())

    def supports_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a classic member with these protocols has one in common with all classic members here."""
        if protocol_type != PROTOCOL_TYPE:
            return False
        shared: frozenset[str] | None = None
        for member in self.members.values():
            if member.classic is not None:
                shared = member.classic.protocol_names if shared is None else shared & member.classic.protocol_names
        return bool(names) if shared is None else not shared.isdisjoint(names)

    @property
    def is_all_classic(self) -> bool:
        """Whether nobody is left who speaks the new protocol, so that the group may become classic."""
        return bool(self.members) and self.classic_count == len(self.members)

    def waits_for_others(self, member: Member) -> bool:
        """Whether a partition that the member is to have is still with somebody else."""
        return any(
            self.owner_of(topic, partition) not in (None, member.member_id)
            for topic, partitions in self.target_of(member).items()
            for partition in partitions
            if partition not in member.assigned.get(topic, ())
        )

    # --- offsets --------------------------------------------------------------------------------------------------

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        member_epoch: int,
        partitions: Iterable[tuple[Uuid, int]],
        *,
        is_transactional: bool,
        version: int,
    ) -> None:
        """Raise what keeps somebody from committing; a commit from an earlier epoch passes for partitions kept since.

        Nobody in particular (epoch below zero) may commit to a group without members, and within a transaction.
        """
        if member_epoch < 0 and not self.members:
            return
        if is_transactional and member_epoch == -1 and not member_id and instance_id is None:
            return
        member = self.member(member_id)
        if not is_transactional and not member.uses_classic_protocol and version < COMMIT_VERSION_MIN:
            raise ApiError(
                errors.UNSUPPORTED_VERSION,
                f"members of the consumer protocol commit by OffsetCommit version {COMMIT_VERSION_MIN} or later, not "
                f"{version}",
            )
        if member_epoch == member.member_epoch:
            return
        if member_epoch > member.member_epoch:
            raise _stale(member, member_epoch, f"and the member is in {member.member_epoch}")
        for topic_id, partition in partitions:
            assigned = member.assigned.get(topic_id, {}).get(partition)
            if assigned is None:
                assigned = member.pending_revocation.get(topic_id, {}).get(partition)
            if assigned is None or member_epoch < assigned:
                raise _stale(member, member_epoch, f"and the member has not had {topic_id}-{partition} since then")

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise what keeps somebody from reading offsets; whoever names no member may."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(member, member_epoch, f"and the member is in {member.member_epoch}")

    def offsets_unused_since_ms(self, commit_timestamp_ms: int) -> int:
        """From when on the retention of an offset counts, if nobody is subscribed to its topic."""
        return commit_timestamp_ms

    def check_delete(self) -> None:
        if self.members:
            raise ApiError(errors.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        """Offsets of topics without a subscription may be deleted while the group has members."""

    # --- the lines of the log -------------------------------------------------------------------------------------

    def apply_group(self, value: ConsumerGroupMetadataValue) -> None:
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def apply_member(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        known = self.members.get(member_id)
        if value is not None:
            self._put((known or Member(member_id=member_id)).with_metadata(value))
        elif known is not None:
            self._release(known)
            del self.members[member_id]
            if known.instance_id is not None and self.static_members.get(known.instance_id) == member_id:
                del self.static_members[known.instance_id]

    def apply_target(self, value: ConsumerGroupTargetAssignmentMetadataValue | None) -> None:
        self.assignment_epoch = -1 if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def apply_target_member(self, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = {
                Uuid(entry.topic_id): frozenset(entry.partitions) for entry in value.topic_partitions
            }

    def apply_current(self, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> None:
        known = self.members.get(member_id)
        if value is not None:
            self._put((known or Member(member_id=member_id)).with_current(value))
        elif known is not None:
            self._put(known.without_current())

    def apply_pattern(self, pattern: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
        if value is None:
            self.patterns.pop(pattern, None)
        else:
            self.patterns[pattern] = ResolvedPattern(frozenset(value.topics), value.version, value.timestamp)

    def _put(self, member: Member) -> None:
        known = self.members.get(member.member_id)
        if known is not None:
            self._release(known)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for owned in (member.assigned, member.pending_revocation):
            for pair in pairs(owned):
                self._owners[pair] = member.member_id

    def _release(self, member: Member) -> None:
        # A compacted log may show a new owner before it shows how the old one let go: the newest line counts.
        for owned in (member.assigned, member.pending_revocation):
            for pair in pairs(owned):
                if self._owners.get(pair) == member.member_id:
                    del self._owners[pair]


def _stale(member: Member, epoch: int, what: str) -> ApiError:
    if member.uses_classic_protocol:
        return ApiError(errors.ILLEGAL_GENERATION, f"the request is of generation {epoch}, {what}")
    return ApiError(errors.STALE_MEMBER_EPOCH, f"the request is of epoch {epoch}, {what}")
