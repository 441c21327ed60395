"""A fetch session seen from the client (KIP-227): after the first request only what changed is said.

Pure. The fetcher keeps one session for each broker, asks here what to put into a request and reports how it went.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.model.ids import TopicPartition, Uuid

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1


class Wanted(NamedTuple):
    """What a fetch says about one partition."""

    topic_id: Uuid
    fetch_offset: int
    leader_epoch: int
    size_bytes_max: int


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
