"""A fetch session seen from the client (KIP-227): after the first request only what changed is said.

Pure. The fetcher keeps one session for each broker, asks here what a request says and reports how it went.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.client.offsets import ISOLATION_LEVELS
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import NO_LEADER_EPOCH, TopicPartition, Uuid
from barnabas.wire.messages.fetch import FetchRequest

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
SESSIONLESS: Final = -1
EPOCH_MAX: Final = 2**31 - 1
HISTORY_SINCE: Final = 12  # from this version on a broker compares epochs


class Wanted(NamedTuple):
    """What a fetch says about one partition."""

    topic_id: Uuid
    fetch_offset: int
    leader_epoch: int
    size_bytes_max: int
    last_fetched_epoch: int = NO_LEADER_EPOCH


class Plan(NamedTuple):
    session_id: int
    epoch: int
    changed: dict[TopicPartition, Wanted]
    forgotten: dict[TopicPartition, Uuid]


class FetchSession:
    __slots__ = ("_epoch", "_id", "_known")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}

    def plan(self, wanted: Mapping[TopicPartition, Wanted]) -> Plan:
        """The next request for these partitions, no more and no fewer."""
        if self._epoch == FIRST_EPOCH:
            self._known = dict(wanted)
            return Plan(NO_SESSION, FIRST_EPOCH, dict(wanted), {})
        forgotten = {
            place: known.topic_id
            for place, known in self._known.items()
            if place not in wanted or wanted[place].topic_id != known.topic_id
        }
        changed = {place: want for place, want in wanted.items() if self._known.get(place) != want}
        self._known = dict(wanted)
        return Plan(self._id, self._epoch, changed, forgotten)

    def answered(self, session_id: int) -> None:
        """The broker gave data and, unless it is 0, a session to go on with."""
        if session_id == NO_SESSION:
            self.reset()
            return
        if session_id == self._id:
            self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        else:
            self._id, self._epoch = session_id, 1

    def reset(self) -> None:
        """Something went wrong: the next request tells everything anew."""
        self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        self._known = {}


def sessionless(wanted: Mapping[TopicPartition, Wanted]) -> Plan:
    """A request that tells everything and begins no session."""
    return Plan(NO_SESSION, SESSIONLESS, dict(wanted), {})


def request_of(plan: Plan, settings: ConsumerSettings, version: int, *, wait_ms: int) -> FetchRequest:
    """What is sent for a plan."""
    topics: dict[str, FetchRequest.FetchTopic] = {}
    for place, want in plan.changed.items():
        entry = topics.get(place.topic)
        if entry is None:
            entry = FetchRequest.FetchTopic(topic=place.topic, topic_id=want.topic_id, partitions=[])
            topics[place.topic] = entry
        entry.partitions.append(
            FetchRequest.FetchPartition(
                partition=place.partition,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.fetch_offset,
                last_fetched_epoch=want.last_fetched_epoch if version >= HISTORY_SINCE else NO_LEADER_EPOCH,
                partition_max_bytes=want.size_bytes_max,
            )
        )
    forgotten: dict[str, FetchRequest.ForgottenTopic] = {}
    for place, topic_id in plan.forgotten.items():
        gone = forgotten.setdefault(
            place.topic, FetchRequest.ForgottenTopic(topic=place.topic, topic_id=topic_id, partitions=[])
        )
        gone.partitions.append(place.partition)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=settings.fetch_min_bytes,
        max_bytes=settings.fetch_max_bytes,
        isolation_level=ISOLATION_LEVELS[settings.isolation_level],
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=list(topics.values()),
        forgotten_topics_data=list(forgotten.values()),
        rack_id=settings.client_rack,
    )
