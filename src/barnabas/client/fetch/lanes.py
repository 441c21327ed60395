"""The two lanes to a broker that fetches take: on one they wait for news, the other is for those who need not wait.

A fetch of partitions that have no news is held by its broker for ``fetch.max.wait.ms``, and cannot be taken back. A
partition whose records were taken meanwhile would have to wait with it, however many there still are to read; so it is
asked for beside it, for no longer than the first one waits: then they travel together again. Pure; the fetcher says
what is under way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.model.ids import TopicPartition

FETCH_LANE: Final = "fetch"  # a long poll would hold up whatever waits behind it on the same connection
SIDE_LANE: Final = "fetch-beside"
HELD_SECONDS_MIN: Final = 0.005  # an answer that is on its way is not overtaken


class Flight(NamedTuple):
    places: frozenset[TopicPartition]
    asked_at: float
    until: float  # when the broker answers at the latest


class FetchLanes:
    __slots__ = ("_flights", "_wait_seconds")

    def __init__(self, *, wait_ms_max: int) -> None:
        self._wait_seconds = wait_ms_max / 1000
        self._flights: dict[tuple[int, str], Flight] = {}

    def is_asked(self, place: TopicPartition) -> bool:
        return any(place in flight.places for flight in self._flights.values())

    def free(self, source: int, now: float) -> str | None:
        """The lane that a request may take now; None while it has to wait for the answer of another."""
        first = self._flights.get((source, FETCH_LANE))
        if first is None:
            return FETCH_LANE
        if (source, SIDE_LANE) in self._flights or not first.asked_at + HELD_SECONDS_MIN <= now < first.until:
            return None
        return SIDE_LANE

    def free_at(self, source: int, now: float) -> float | None:
        """When a lane becomes free by the time that passes; None if only an answer can make it so."""
        first = self._flights.get((source, FETCH_LANE))
        if first is None or (source, SIDE_LANE) in self._flights:
            return None
        held = first.asked_at + HELD_SECONDS_MIN
        return held if now < held < first.until else None

    def depart(self, source: int, lane: str, places: Iterable[TopicPartition], now: float) -> int:
        """A request leaves; so many milliseconds it may wait at the broker."""
        until = now + self._wait_seconds
        first = self._flights.get((source, FETCH_LANE))
        if lane == SIDE_LANE and first is not None:
            until = min(until, first.until)
        self._flights[source, lane] = Flight(frozenset(places), now, until)
        return round(1000 * (until - now))

    def arrive(self, source: int, lane: str) -> None:
        del self._flights[source, lane]
