"""A classic consumer group seen from one member: what it says next, and what an answer makes of it.

A machine: no requests are sent here and nothing waits; ``group.py`` performs what this decides.

::

    UNJOINED --join--> JOINING --joined--> SYNCING --synced--> STABLE
    JOINING, SYNCING, STABLE --told to join again--> UNJOINED (with its member id)
    JOINING, SYNCING, STABLE --no longer known--> UNJOINED (as nobody; what it owned is lost)
    any --fenced, refused--> FAILED
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.client.errors import GroupRefused
from barnabas.client.partitions.assignors import Assignor, Candidate
from barnabas.client.partitions.protocol import (
    NO_GENERATION,
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError, error_of
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

UNKNOWN_MEMBER: Final = ""
REASON_CHARACTERS_MAX: Final = 255


# What a coordinator says to a member that speaks of a generation which is over.
_MOVED_ON: Final = frozenset({errors.ILLEGAL_GENERATION, errors.REBALANCE_IN_PROGRESS, errors.UNKNOWN_MEMBER_ID})


class Phase(enum.Enum):
    UNJOINED = "unjoined"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"
    FAILED = "failed"


class Outcome(enum.Enum):
    """What to do after an answer."""

    GO_ON = "go on"
    JOIN_AGAIN = "join again"
    RETRY = "retry after a pause"
    FIND_COORDINATOR = "find the coordinator, then retry"


_LOST_COORDINATOR: Final = frozenset({errors.COORDINATOR_NOT_AVAILABLE, errors.NOT_COORDINATOR})
_UNKNOWN: Final = frozenset({errors.UNKNOWN_MEMBER_ID, errors.ILLEGAL_GENERATION})


class Membership:
    def __init__(
        self,
        *,
        group_id: str,
        instance_id: str | None,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        assignors: Sequence[Assignor],
    ) -> None:
        assert assignors
        self.group_id = group_id
        self.instance_id = instance_id
        self.phase = Phase.UNJOINED
        self.member_id = UNKNOWN_MEMBER
        self.generation = NO_GENERATION
        self.owned: tuple[TopicPartition, ...] = ()  # what the group believes that we have
        self.is_leader = False
        self.is_lost = False  # the group gave away what we had, without asking
        self.former = (NO_GENERATION, UNKNOWN_MEMBER)  # the generation and the id under which we had that
        self.protocol: str | None = None
        self.failure: ApiError | None = None
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._last: tuple[tuple[TopicPartition, ...], int] = ((), NO_GENERATION)  # what sticky members remember
        self._reason = "the first join"

    @property
    def is_cooperative(self) -> bool:
        """Only if all of the assignors are: a group with one that is not gives up everything in each round."""
        return all(assignor.is_cooperative for assignor in self._assignors.values())

    @property
    def is_member(self) -> bool:
        """The group counts on us, also while it waits for us to join again."""
        return self.generation != NO_GENERATION and self.phase in (Phase.STABLE, Phase.UNJOINED)

    @property
    def needs_join(self) -> bool:
        return self.phase is Phase.UNJOINED

    # --- joining --------------------------------------------------------------------------------------------------

    def join(self, topics: Sequence[str], *, rack: str | None = None) -> JoinGroupRequest:
        assert self.phase is Phase.UNJOINED
        self.phase = Phase.JOINING
        owned, generation = self._last
        protocols = [
            JoinGroupRequest.JoinGroupRequestProtocol(
                name=name,
                metadata=encode_subscription(
                    Subscription(
                        tuple(sorted(topics)),
                        assignor.user_data(owned, generation),
                        self.owned,
                        generation,
                        rack,
                    )
                ),
            )
            for name, assignor in self._assignors.items()
        ]
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=self._reason[:REASON_CHARACTERS_MAX],
        )

    def joined(self, answer: JoinGroupResponse) -> Outcome:
        assert self.phase is Phase.JOINING
        row = error_of(answer.error_code)
        if row is errors.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.phase = Phase.UNJOINED
            return Outcome.JOIN_AGAIN
        if row is not errors.NONE:
            return self._refused(row)
        if answer.protocol_name not in self._assignors:
            raise self._failed(ApiError(errors.INCONSISTENT_GROUP_PROTOCOL, f"chose {answer.protocol_name!r}"))
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        self.protocol = answer.protocol_name
        self.is_leader = answer.leader == answer.member_id
        self.phase = Phase.SYNCING
        return Outcome.GO_ON

    def candidates(self, answer: JoinGroupResponse) -> list[Candidate]:
        """All members, as only the leader is told of them."""
        return [
            Candidate(member.member_id, decode_subscription(member.metadata), member.group_instance_id)
            for member in answer.members
        ]

    def assignments(
        self, answer: JoinGroupResponse, counts: Mapping[str, int]
    ) -> list[SyncGroupRequest.SyncGroupRequestAssignment]:
        """The leader's work; nothing for the others, or when the group stays as it was (KIP-814)."""
        if not self.is_leader or answer.skip_assignment:
            return []
        assert self.protocol is not None
        decided = self._assignors[self.protocol].assign(counts, self.candidates(answer))
        return [
            SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=member_id, assignment=encode_assignment(decided[member_id])
            )
            for member_id in sorted(decided)
        ]

    def sync(self, assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]) -> SyncGroupRequest:
        assert self.phase is Phase.SYNCING
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol,
            assignments=assignments,
        )

    def synced(self, answer: SyncGroupResponse) -> Outcome:
        assert self.phase is Phase.SYNCING
        row = error_of(answer.error_code)
        if row is not errors.NONE:
            return self._refused(row)
        self.owned = decode_assignment(bytes(answer.assignment))
        self._last = self.owned, self.generation
        self.phase = Phase.STABLE
        return Outcome.GO_ON

    # --- staying --------------------------------------------------------------------------------------------------

    def heartbeat(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )

    def told(self, row: WireError, *, generation: int) -> Outcome:
        """The error of a heartbeat or commit that was sent in this generation; a late one changes nothing."""
        if row is errors.NONE or generation != self.generation or not self.is_member:
            return Outcome.FIND_COORDINATOR if row in _LOST_COORDINATOR else Outcome.GO_ON
        if self.phase in (Phase.JOINING, Phase.SYNCING) and row in _MOVED_ON:
            return Outcome.GO_ON  # of course it has: the answer to our join, which is on its way, says where to
        return self._refused(row)

    def rejoin(self, reason: str) -> None:
        """Join again at the next occasion: the subscription or the topics are not what they were."""
        if self.phase is Phase.STABLE:
            self.phase = Phase.UNJOINED
            self._reason = reason

    def interrupted(self) -> None:
        """A join or sync has no answer; the next one begins anew, under the id that we have."""
        if self.phase in (Phase.JOINING, Phase.SYNCING):
            self.phase = Phase.UNJOINED

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """We gave these up."""
        gone = frozenset(partitions)
        self.owned = tuple(place for place in self.owned if place not in gone)

    def left(self) -> None:
        """We are no member any more and may become one again."""
        if self.phase is not Phase.FAILED:
            self._forget("the member left", forgets_id=True)

    def leave(self) -> LeaveGroupRequest.MemberIdentity | None:
        """Who leaves; None for someone whom the group does not know, or a static member that will come back."""
        if self.member_id == UNKNOWN_MEMBER or self.instance_id is not None or self.phase is Phase.FAILED:
            return None
        return LeaveGroupRequest.MemberIdentity(
            member_id=self.member_id, group_instance_id=None, reason="the consumer was closed"
        )

    def _refused(self, row: WireError) -> Outcome:
        if row in _LOST_COORDINATOR:
            self.interrupted()
            return Outcome.FIND_COORDINATOR
        if row is errors.COORDINATOR_LOAD_IN_PROGRESS:
            self.interrupted()
            return Outcome.RETRY
        if row is errors.REBALANCE_IN_PROGRESS:
            self._reason = "the group rebalances"
            self.phase = Phase.UNJOINED
            return Outcome.JOIN_AGAIN
        if row in _UNKNOWN:
            self._forget(f"the coordinator said {row.name}", forgets_id=row is errors.UNKNOWN_MEMBER_ID)
            return Outcome.JOIN_AGAIN
        raise self._failed(ApiError(row))

    def _forget(self, reason: str, *, forgets_id: bool) -> None:
        self._reason = reason
        self._lose()
        if forgets_id:
            self.member_id = UNKNOWN_MEMBER
        self.phase = Phase.UNJOINED

    def _lose(self) -> None:
        if self.owned and not self.is_lost:
            self.is_lost = True
            self.former = (self.generation, self.member_id)
        self.owned = ()
        self.generation = NO_GENERATION

    def _failed(self, error: ApiError) -> GroupRefused:
        self.phase = Phase.FAILED
        self._lose()
        self.failure = error
        return GroupRefused(error.error, f"group {self.group_id!r}: {error.message}")
