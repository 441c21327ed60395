"""Asks the cluster what a source needs to know: which partitions there are, where they begin and end, offsets of times.

Used on the driver by both readers. What to do about what is gone is decided in ``plan.py``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.client.cluster.metadata import TopicMetadata
from barnabas.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListedOffset, list_offsets
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import NO_OFFSET, TopicPartition
from barnabas.spark.connector.link import Link, link
from barnabas.spark.connector.offsets import EARLIEST, LATEST, Offsets
from barnabas.spark.connector.source_options import Edge, SourceOptions
from barnabas.spark.errors import InvalidOption

T = TypeVar("T")


class Positions:
    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self.topic_ids: dict[str, str] = {}
        self._known: list[TopicPartition] | None = None
        self._known_until = 0.0

    @property
    def link(self) -> Link:
        return link(ConsumerSettings, self._options.settings)

    def partitions(self) -> list[TopicPartition]:
        """Those to read, as of now, or as of a while ago if ``partition.metadata.cache.ttl.ms`` allows it."""
        if self._known is None or time.monotonic() >= self._known_until:
            self._known = self._retrying(self._find)
            self._known_until = time.monotonic() + max(0, self._options.partitions_ttl_ms) / 1000
        return self._known

    def earliest(self, places: Iterable[TopicPartition]) -> Offsets:
        return self._edges(places, EARLIEST_TIMESTAMP)

    def latest(self, places: Iterable[TopicPartition]) -> Offsets:
        return self._edges(places, LATEST_TIMESTAMP)

    def resolve(self, edge: Edge, places: Iterable[TopicPartition], *, is_start: bool) -> Offsets:
        """An edge as offsets; those of a time are of the first record that is not older."""
        wanted = list(places)
        if edge.kind == "earliest":
            return self.earliest(wanted)
        if edge.kind == "latest":
            return self.latest(wanted)
        if edge.kind == "time":
            return self._at_times(dict.fromkeys(wanted, edge.time_ms), is_start=is_start)
        told = dict(edge.offsets or {})
        name = "starting" if is_start else "ending"
        if set(told) != set(wanted):
            odd = sorted(set(told) ^ set(wanted))
            raise InvalidOption(
                f"{name}Offsets must name every partition that is read, with -1 for latest and -2 for earliest; "
                f"look at {', '.join(map(str, odd))}"
            )
        if edge.kind == "times":
            return self._at_times(told, is_start=is_start)
        latest = self.latest([place for place, offset in told.items() if offset == LATEST])
        earliest = self.earliest([place for place, offset in told.items() if offset == EARLIEST])
        return told | latest | earliest

    def first_not_older(self, place: TopicPartition, time_ms: int) -> int | None:
        offset = self._listed({place: time_ms})[place].offset
        return None if offset == NO_OFFSET else offset

    # --- asking ---------------------------------------------------------------------------------------------------

    def _find(self) -> list[TopicPartition]:
        options = self._options
        if options.pattern is not None:
            pattern = re.compile(options.pattern)
            topics = [
                topic
                for topic in self.link.run(self.link.cluster.retrying(self.link.cluster.all_topics))
                if pattern.fullmatch(topic.name) and not topic.is_internal
            ]
        else:
            names = options.topics or tuple(dict.fromkeys(place.topic for place in options.assigned))
            topics = self._look_up(names)
        self.topic_ids = {topic.name: topic.id.hex() for topic in topics}
        found = [TopicPartition(topic.name, part.partition) for topic in topics for part in topic.partitions]
        if not options.assigned:
            return sorted(found)
        absent = [str(place) for place in options.assigned if place not in found]
        if absent:
            raise InvalidOption(f"assign: there is no partition {', '.join(absent)}; `barnabas topic list` shows all")
        return list(options.assigned)

    def _look_up(self, names: Iterable[str]) -> list[TopicMetadata]:
        wanted = list(names)

        cluster = self.link.cluster

        async def ask() -> dict[str, TopicMetadata]:
            cluster.invalidate()  # partitions may have come since
            return await cluster.look_up(wanted)

        found = self.link.run(cluster.retrying(ask))
        absent = [name for name in wanted if name not in found]
        if absent:
            # A topic that is just being made has no leaders yet, and one that is being made again is gone for a moment.
            raise ApiError(
                errors.UNKNOWN_TOPIC_OR_PARTITION,
                f"There is no topic {', '.join(map(repr, absent))}; `barnabas topic create` makes one, "
                f"and subscribePattern reads topics as they appear.",
            )
        return [found[name] for name in wanted]

    def _edges(self, places: Iterable[TopicPartition], timestamp: int) -> Offsets:
        wanted = dict.fromkeys(places, timestamp)
        return {place: entry.offset for place, entry in self._listed(wanted).items()}

    def _at_times(self, times: Mapping[TopicPartition, int], *, is_start: bool) -> Offsets:
        listed = self._listed(times)
        none = [place for place, entry in listed.items() if entry.offset == NO_OFFSET]
        if none and is_start and self._options.when_no_offset_for_time == "error":
            raise InvalidOption(
                f"no record of {', '.join(map(str, none))} is as new as the time to start from; "
                f"say startingOffsetsByTimestampStrategy=latest to start at the end there"
            )
        return {place: entry.offset for place, entry in listed.items()} | self.latest(none)

    def _listed(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset]:
        if not timestamps:
            return {}
        level = self._options.settings["isolation.level"]
        return self._retrying(lambda: self.link.run(list_offsets(self.link.cluster, timestamps, isolation_level=level)))

    def _retrying(self, attempt: Callable[[], T]) -> T:
        """The client retries by itself until its time is up; ``fetchOffset.numRetries`` says how often it may do so."""
        for left in range(self._options.retries, -1, -1):
            try:
                return attempt()
            except BarnabasError as error:
                if not error.retriable or not left:
                    raise
                time.sleep(self._options.retry_pause_ms / 1000)
        raise AssertionError("the last attempt returns or raises")
