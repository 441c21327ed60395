"""A group of the classic protocol: its state, its members, its leader, and what each state allows.

The members agree among themselves who reads what; the group only brings them together in generations. When a
generation begins and ends is decided in :mod:`barnabas.coordinator.classic.rebalance`, how a request is answered in
:mod:`barnabas.coordinator.classic.requests`. Nothing here knows of time-outs, records or answers.
"""

from __future__ import annotations

import enum
from collections import Counter
from typing import ClassVar, Final

from barnabas.coordinator.classic.member import ClassicMember, Protocols, largest_metadata_bytes
from barnabas.coordinator.groups.records import GroupMetadataValue
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed
from barnabas.model.ids import NO_TIMESTAMP
from barnabas.wire.message import decode
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER: Final = "consumer"  # the protocol type whose metadata the broker can read
_VERSION_BYTES: Final = 2  # in front of a subscription


class GroupState(enum.Enum):
    """As ListGroups spells them. A group that does not exist is called Dead."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING,
    GroupState.COMPLETING,
    GroupState.STABLE,
)

TRANSITIONS: Final = {
    (EMPTY, PREPARING),  # the first member joins
    (PREPARING, COMPLETING),  # everyone who will join has joined
    (PREPARING, EMPTY),  # nobody has
    (COMPLETING, STABLE),  # the leader has handed in the assignment
    (COMPLETING, PREPARING),  # someone came, went or changed its mind
    (STABLE, PREPARING),
}


class ClassicGroup:
    group_type: ClassVar = "classic"

    def __init__(self, group_id: str, *, now_ms: int) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.previous_state = EMPTY
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.joined_count = 0  # how many of them wait for the generation to begin; looked at by every join
        self._speakers: Counter[str] = Counter()  # protocol -> how many members speak it
        self.metadata_bytes = 0  # what the group's line has to hold of its members' metadata, at most
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.pending_members: dict[str, None] = {}  # ids given out that have not come back
        self.pending_syncs: dict[str, None] = {}
        self.subscribed_topics: frozenset[str] | None = None  # None: the broker cannot know
        self.has_new_member = False  # someone joined during the initial delay
        self.initial_remaining_ms = 0  # how much longer that delay may become

    def __repr__(self) -> str:
        return f"ClassicGroup({self.group_id!r}, {self.state.value}, {len(self.members)} members)"

    def move(self, state: GroupState, *, now_ms: int) -> None:
        assert (self.state, state) in TRANSITIONS, (self, state)
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    # --- members --------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    @property
    def may_expire(self) -> bool:
        return self.state is EMPTY and not self.pending_members

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def have_all_joined(self) -> bool:
        return not self.pending_members and self.joined_count == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def add(self, member: ClassicMember) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        assert self.protocol_type == member.protocol_type
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members
            self.static_members[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.joined_count += member.join_request is not None
        self._note_protocols(member)
        self.pending_members.pop(member.member_id, None)

    def note_join(self, member: ClassicMember, request_id: int | None) -> None:
        """A member waits for the generation to begin with this request; None: it does so no longer."""
        self.joined_count += (request_id is not None) - (member.join_request is not None)
        member.join_request = request_id

    def change_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        self._forget_protocols(member)
        member.protocols = protocols
        self._note_protocols(member)

    def _note_protocols(self, member: ClassicMember) -> None:
        self._speakers.update(dict(member.protocols).keys())
        self.metadata_bytes += largest_metadata_bytes(member.protocols)

    def _forget_protocols(self, member: ClassicMember) -> None:
        self.metadata_bytes -= largest_metadata_bytes(member.protocols)
        for name in dict(member.protocols):
            self._speakers[name] -= 1
            if not self._speakers[name]:
                del self._speakers[name]

    def remove(self, member_id: str) -> None:
        """Forget a member or an id that was given out; the eldest member leads if the leader goes."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.joined_count -= member.join_request is not None
            self._forget_protocols(member)
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """A static member has come back and goes by a new id."""
        assert member.instance_id is not None
        old_id, member.member_id = member.member_id, member_id
        del self.members[old_id]
        self.members[member_id] = member
        self.static_members[member.instance_id] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id

    def elect_joined_leader(self) -> bool:
        """Someone who has joined leads; whether there is one."""
        leader = self.members.get(self.leader_id or "")
        if leader is None:
            return False
        if leader.join_request is None:
            joined = (member for member in self.members.values() if member.join_request is not None)
            elected = next(joined, None)
            if elected is None:
                return False
            self.leader_id = elected.member_id
        return True

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """The member that a request claims to be; ApiError if it is none, or an instance that was replaced."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise ApiError(errors.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise ApiError(errors.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(errors.UNKNOWN_MEMBER_ID)
        return member

    # --- protocols ------------------------------------------------------------------------------------------------

    def can_speak(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols could be in the group together with those who are."""
        if not protocol_type or not protocols:
            return False
        if self.state is EMPTY:
            return True
        if protocol_type != self.protocol_type:
            return False
        # The last member may have gone a moment ago, and nobody is left who has to be understood.
        shared = self._shared_protocols()
        return not self.members or any(name in shared for name, _ in protocols)

    def _shared_protocols(self) -> dict[str, None]:
        """What every member speaks, in the order of the eldest."""
        eldest = next(iter(self.members.values()), None)
        if eldest is None:
            return {}
        return {name: None for name, _ in eldest.protocols if self._speakers[name] == len(self.members)}

    def choose_protocol(self) -> str:
        """Each member votes for what it likes best of what all speak; the most votes win."""
        shared = self._shared_protocols()
        votes = Counter(member.vote(shared) for member in self.members.values())
        return max(shared, key=lambda name: votes[name])

    def begin_generation(self, *, now_ms: int) -> None:
        self.generation += 1
        self.pending_syncs.clear()
        self.protocol = self.choose_protocol() if self.members else None
        self.subscribed_topics = self._read_subscriptions()
        self.move(COMPLETING if self.members else EMPTY, now_ms=now_ms)

    def _read_subscriptions(self) -> frozenset[str] | None:
        """The topics that the members say they read; None if they use metadata of another kind."""
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            try:
                # Version 0 is the beginning of every version.
                subscription = decode(ConsumerProtocolSubscription, 0, member.metadata(self.protocol), _VERSION_BYTES)
            except Malformed:
                return None
            topics.update(subscription.topics)
        return frozenset(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    # --- what a state allows --------------------------------------------------------------------------------------

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool
    ) -> ClassicMember | None:
        """Whether these offsets may be committed: the member who does, None for someone who is no member."""
        if generation < 0 and self.state is EMPTY:
            return None
        member = None
        if generation >= 0 or member_id or instance_id is not None:
            member = self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise ApiError(errors.ILLEGAL_GENERATION)
        elif not is_transactional and self.state is not EMPTY:
            raise ApiError(errors.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state is COMPLETING:
            raise ApiError(errors.REBALANCE_IN_PROGRESS)
        return member

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Any client may fetch the offsets of a classic group."""

    def check_delete(self) -> None:
        if self.state is not EMPTY:
            raise ApiError(errors.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        if self.state is not EMPTY and self.protocol_type != CONSUMER:
            raise ApiError(errors.NON_EMPTY_GROUP)

    def offsets_unused_since_ms(self, commit_timestamp_ms: int) -> int | None:
        """From when on the retention of an offset counts; None while it may not expire."""
        if self.protocol_type is None:
            return commit_timestamp_ms  # nobody manages this group: only commits tell whether it lives
        if self.state is EMPTY:
            return self.state_since_ms if self.state_since_ms != NO_TIMESTAMP else commit_timestamp_ms
        if self.state is STABLE and self.subscribed_topics is not None:
            return commit_timestamp_ms
        return None

    # --- as a record ----------------------------------------------------------------------------------------------

    def as_record(self, assignments: dict[str, bytes] | None = None) -> GroupMetadataValue:
        """The generation as it is kept; with the assignment that is about to count, or the one that does."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader_id,
            current_state_timestamp=self.state_since_ms,
            members=[
                member.as_record(
                    self.protocol or "",
                    member.assignment if assignments is None else assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ],
        )

    @classmethod
    def of_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        group = cls(group_id, now_ms=value.current_state_timestamp)
        group.generation = value.generation
        group.protocol = value.protocol
        for record in value.members:
            group.add(ClassicMember.of_record(record, protocol_type=value.protocol_type, protocol=value.protocol))
        group.protocol_type = value.protocol_type or None
        group.leader_id = value.leader
        group.state = STABLE if group.members else EMPTY
        group.subscribed_topics = group._read_subscriptions()
        return group
