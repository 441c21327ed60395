"""A group of the consumer protocol (KIP-848) seen from one member: one heartbeat says and answers everything.

A machine, as ``membership.py`` is for classic groups: nothing is sent here; ``consumer_session.py`` performs. The
broker decides who reads what; the member gives up first, says so, and then gets what is new.

::

    UNJOINED --join--> JOINING --answered--> STABLE
    JOINING, STABLE --fenced, unknown--> UNJOINED (what it owned is lost)
    any --refused--> FAILED
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.client.errors import GroupRefused
from barnabas.client.group.membership import Outcome, Phase
from barnabas.client.partitions.protocol import NO_GENERATION
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError, error_of
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
STATIC_LEAVE_EPOCH: Final = -2  # the place is kept for whoever comes back under the name

_LOST_COORDINATOR: Final = frozenset({errors.COORDINATOR_NOT_AVAILABLE, errors.NOT_COORDINATOR})
_UNKNOWN: Final = frozenset({errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH})
_RETRIED: Final = frozenset({errors.COORDINATOR_LOAD_IN_PROGRESS, errors.UNRELEASED_INSTANCE_ID})


class ConsumerMembership:
    is_cooperative = True

    def __init__(
        self,
        *,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        rebalance_timeout_ms: int,
        rack: str | None,
        assignor: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.phase = Phase.UNJOINED
        self.generation = NO_GENERATION  # the member epoch
        self.owned: tuple[TopicPartition, ...] = ()
        self.target: dict[Uuid, list[int]] | None = None  # what the broker wants us to have, if it said so
        self.is_lost = False
        self.former = (NO_GENERATION, member_id)  # the epoch and the id under which we had what is lost
        self.failure: ApiError | None = None
        self.heartbeat_interval_ms = 0
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._rack = rack
        self._assignor = assignor
        self._says_everything = True  # until the broker has heard it once
        self._says_owned = True

    @property
    def needs_join(self) -> bool:
        return self.phase is Phase.UNJOINED

    @property
    def is_member(self) -> bool:
        return self.phase is Phase.STABLE

    @property
    def has_news(self) -> bool:
        """Something that the broker waits to hear."""
        return self._says_owned or self._says_everything

    def join(self) -> None:
        assert self.phase is Phase.UNJOINED
        self.phase = Phase.JOINING
        self.generation = JOIN_EPOCH
        self._says_everything = self._says_owned = True

    def heartbeat(
        self, topics: Sequence[str] | None, pattern: str | None, ids: dict[str, Uuid]
    ) -> ConsumerGroupHeartbeatRequest:
        """What changed since the broker last answered. ``ids`` are those of the topics that we own."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.generation
        )
        if self._says_everything:
            request.instance_id = self.instance_id
            request.rack_id = self._rack
            request.server_assignor = self._assignor
            request.rebalance_timeout_ms = self._rebalance_timeout_ms
            request.subscribed_topic_names = None if topics is None else list(topics)
            request.subscribed_topic_regex = pattern
        if self._says_owned or self._says_everything:
            owned: dict[str, list[int]] = {}
            for topic, partition in self.owned:
                owned.setdefault(topic, []).append(partition)
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=ids[topic], partitions=partitions)
                for topic, partitions in owned.items()
            ]
        return request

    def answered(self, answer: ConsumerGroupHeartbeatResponse) -> Outcome:
        row = error_of(answer.error_code)
        if row is not errors.NONE:
            return self._refused(row, answer.error_message)
        self.generation = answer.member_epoch
        self.member_id = answer.member_id or self.member_id
        self.heartbeat_interval_ms = answer.heartbeat_interval_ms
        self.phase = Phase.STABLE
        self._says_everything = self._says_owned = False
        if answer.assignment is not None:
            self.target = {
                Uuid(topic.topic_id): sorted(topic.partitions) for topic in answer.assignment.topic_partitions
            }
        return Outcome.GO_ON

    def told(self, row: WireError, *, generation: int) -> Outcome:
        """The error of a commit that was sent in this epoch."""
        if row in _LOST_COORDINATOR:
            return Outcome.FIND_COORDINATOR
        if row in _UNKNOWN and generation == self.generation and self.is_member:
            return self._refused(row, None)
        return Outcome.GO_ON

    def unanswered(self) -> None:
        """Nobody knows whether the last heartbeat arrived: the next one says everything."""
        self._says_everything = True

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        gone = frozenset(partitions)
        self.owned = tuple(place for place in self.owned if place not in gone)

    def applied(self, owned: Sequence[TopicPartition]) -> None:
        """We have these now, and no others; the broker must hear of it."""
        self.owned = tuple(owned)
        self._says_owned = True

    def rejoin(self, reason: str) -> None:
        """Nothing to do: what was given up is said with the next heartbeat."""

    def left(self) -> None:
        if self.phase is not Phase.FAILED:
            self._forget()

    def leave(self) -> ConsumerGroupHeartbeatRequest | None:
        if self.phase not in (Phase.STABLE, Phase.JOINING):
            return None
        epoch = LEAVE_EPOCH if self.instance_id is None else STATIC_LEAVE_EPOCH
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )

    def _refused(self, row: WireError, message: str | None) -> Outcome:
        if row in _LOST_COORDINATOR:
            return Outcome.FIND_COORDINATOR
        if row in _RETRIED:
            return Outcome.RETRY
        if row in _UNKNOWN:
            self._forget()
            return Outcome.JOIN_AGAIN
        self._forget()
        self.phase = Phase.FAILED
        self.failure = ApiError(row, message)
        raise GroupRefused(row, f"group {self.group_id!r}: {message or row.text}")

    def _forget(self) -> None:
        if self.owned and not self.is_lost:
            self.is_lost = True
            self.former = (self.generation, self.member_id)
        self.owned = ()
        self.target = None
        self.generation = NO_GENERATION
        self.phase = Phase.UNJOINED
