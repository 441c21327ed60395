"""Lanes: which rows the next batch of a source query has. Offsets of Spark are ``{connector: {"g": …, "o": …}}``.

``g`` is the generation of the connector's offsets, which grows when a user changes them; ``o`` is the offset. A shared
lane carries many light sources in one query; an own lane carries one source whose parts are read by executors.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from barnabas.connect.chain import Outgoing
from barnabas.connect.driver.feed import Feed, Range, Reader
from barnabas.connect.driver.rows import outgoings, packed, unpacked
from barnabas.connect.errors import ConnectError
from barnabas.connect.records import Limit, Offset, Part

LANE_TASKS: Final = 2  # partitions of a shared lane's batch
REPLAY_SECONDS_MAX: Final = 30.0  # for a connector of a batch that is repeated to be started again
OWN_RECORDS_MAX: Final = 500_000
OWN_BYTES_MAX: Final = 8 * 1024 * 1024

LaneOffset = dict[str, dict[str, Any]]
OnCommit = Callable[[str, Offset], None]


class RowStore(Protocol):
    """Keeps rows of polling sources until their batch is committed; see ``checkpoints.py``."""

    def keep_rows(self, key: str, about: Mapping[str, Any], data: bytes) -> None:
        """Store rows."""

    def rows(self, key: str, about: Mapping[str, Any]) -> bytes | None:
        """Return stored rows, or None."""


def entry(generation: int, offset: Offset) -> dict[str, Any]:
    """Return a connector's part of a lane's offset."""
    return {"g": generation, "o": offset}


@dataclass(slots=True)
class _Member:
    """A connector in a shared lane."""

    reader: Reader
    generation: int
    base: Offset  # where it starts if the lane's offset has nothing of it
    feed: Feed | None = None
    in_flight: Range | None = None
    committed: Offset | None = None
    is_leaving: bool = False
    left: threading.Event = field(default_factory=threading.Event)


class SharedLane:
    """Many light sources in one query. Called by the threads that serve Spark's process and by the driver's own."""

    def __init__(self, on_commit: OnCommit, on_topics: Callable[[str, set[str]], None], store: RowStore) -> None:
        self._members: dict[str, _Member] = {}
        self._on_commit = on_commit
        self._on_topics = on_topics
        self._store = store
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._members)

    @property
    def names(self) -> list[str]:
        """Return the connectors of the lane."""
        return sorted(self._members)

    def reader(self, name: str) -> Reader | None:
        """Return the reader of a connector."""
        member = self._members.get(name)
        return None if member is None else member.reader

    def add(self, name: str, reader: Reader, base: Offset, on_failure: Callable[[BaseException], None]) -> None:
        """Add a connector, or replace it: a batch under way stays as it is."""
        generation = reader.prepared.spec.generation
        with self._changed:
            old = self._members.get(name)
            member = _Member(reader, generation, base)
            if old is not None and old.generation == generation:
                member.base, member.in_flight, member.committed = old.base, old.in_flight, old.committed
            if old is not None and old.feed is not None:
                old.feed.stop()
            position = base
            if member.in_flight is not None:
                position = member.in_flight.until
            elif member.committed is not None:
                position = member.committed
            member.feed = Feed(reader, position, on_failure)
            self._members[name] = member
            self._changed.notify_all()

    def pause(self, name: str, *, is_paused: bool) -> None:
        """Pause or resume a connector."""
        with self._changed:
            member = self._members.get(name)
            if member is not None and member.feed is not None:
                member.feed.pause(is_paused=is_paused)

    def remove(self, name: str) -> threading.Event:
        """Take a connector out when its batch under way is committed; the event says when that is."""
        with self._changed:
            member = self._members.get(name)
            if member is None:
                done = threading.Event()
                done.set()
                return done
            if member.feed is not None:
                member.feed.stop()
                member.feed = None
            member.is_leaving = True
            if member.in_flight is None:
                self._leave(name, member)
            return member.left

    def _leave(self, name: str, member: _Member) -> None:
        del self._members[name]
        member.left.set()

    def latest(self, start: Mapping[str, dict[str, Any]]) -> LaneOffset:
        """Return the end of the next batch; what is before ``start`` is committed."""
        told: list[tuple[str, Offset]] = []
        with self._changed:
            end: LaneOffset = {}
            for name, member in sorted(self._members.items()):
                known = start.get(name)
                is_known = known is not None and known["g"] == member.generation
                since = known["o"] if known is not None and is_known else member.base
                if is_known and member.committed != since:
                    self._committed(member, since, told, name)
                if member.is_leaving and member.in_flight is None:
                    self._leave(name, member)
                    continue
                if member.in_flight is None and member.feed is not None and is_known:
                    member.in_flight = member.feed.take(since)
                until = since if member.in_flight is None else member.in_flight.until
                end[name] = entry(member.generation, until)
        for name, offset in told:
            self._on_commit(name, offset)
        return end

    def _committed(self, member: _Member, since: Offset, told: list[tuple[str, Offset]], name: str) -> None:
        """The batch that ended here is durable."""
        member.committed = since
        if member.in_flight is not None and member.in_flight.until == since:
            member.in_flight = None
        if member.in_flight is None and member.feed is not None and member.feed.next_since != since:
            # After a restart Spark's checkpoint may be ahead of what was stored: go on from the checkpoint.
            member.feed = member.feed.restarted(since)
            member.reader = member.feed.reader
        told.append((name, since))

    def plan(self, start: Mapping[str, dict[str, Any]], end: Mapping[str, dict[str, Any]]) -> list[bytes]:
        """Return the rows of a batch, packed, one element for each task."""
        tasks: list[list[Outgoing]] = [[] for _ in range(LANE_TASKS)]
        for name, last in sorted(end.items()):
            first = start.get(name)
            if first is None or first["g"] != last["g"] or first["o"] == last["o"]:
                continue
            rows = self._rows(name, last["g"], first["o"], last["o"])
            tasks[zlib.crc32(name.encode()) % LANE_TASKS].extend(rows)
            self._on_topics(name, {row.topic for row in rows})
        return [packed(rows) for rows in tasks]

    def _rows(self, name: str, generation: int, since: Offset, until: Offset) -> list[Outgoing]:
        """Return the rows of a range: those in flight, or after a restart those that are read again."""
        deadline = time.monotonic() + REPLAY_SECONDS_MAX
        with self._changed:
            self._changed.wait_for(lambda: name in self._members, timeout=max(0.0, deadline - time.monotonic()))
            member = self._members.get(name)
            if member is None or member.generation != generation:
                return []  # deleted, stopped or reset meanwhile: it starts again from its stored offsets
            flight = member.in_flight
            reader = member.reader
        if flight is not None and flight.since == since and flight.until == until:
            if reader.is_polled:  # a polling source may not give the same records again
                about = {"g": generation, "since": since, "until": until}
                self._store.keep_rows(f"rows/{name}", about, packed(flight.rows))
            return flight.rows
        reader = Reader(reader.prepared)
        try:
            rows = self._again(name, generation, reader, since, until)
        finally:
            reader.source.close()
        with self._changed:
            if self._members.get(name) is member:
                member.in_flight = Range(since, until, rows)
        return rows

    def _again(self, name: str, generation: int, reader: Reader, since: Offset, until: Offset) -> list[Outgoing]:
        if reader.is_polled:
            about = {"g": generation, "since": since, "until": until}
            data = self._store.rows(f"rows/{name}", about)
            if data is not None:
                return [row for batch in unpacked(data) for row in outgoings(batch)]
        return reader.read(since, until)


class OwnLane:
    """One source in a query of its own; executors read its parts."""

    def __init__(self, name: str, reader: Reader, base: Offset, on_commit: OnCommit) -> None:
        self.name = name
        self.reader = reader
        self._base = base
        self._generation = reader.prepared.spec.generation
        self._on_commit = on_commit
        self._committed: Offset | None = None
        self.is_paused = False

    def latest(self, start: Mapping[str, dict[str, Any]]) -> LaneOffset:
        """Return the end of the next batch; what is before ``start`` is committed."""
        known = start.get(self.name)
        if known is None or known["g"] != self._generation:
            return {self.name: entry(self._generation, self._base)}
        since: Offset = known["o"]
        if self._committed != since:
            self._committed = since
            self.reader.committed(since)
            self._on_commit(self.name, since)
        if self.is_paused:
            return {self.name: known}
        until = self.reader.source.latest(since, Limit(OWN_RECORDS_MAX, OWN_BYTES_MAX))
        return {self.name: entry(self._generation, until)}

    def plan(self, start: Mapping[str, dict[str, Any]], end: Mapping[str, dict[str, Any]]) -> list[Part]:
        """Return the parts of a batch."""
        first, last = start.get(self.name), end[self.name]
        if first is None or first["g"] != last["g"] or first["o"] == last["o"]:
            return []
        tasks = self.reader.prepared.common.tasks_max
        parts = list(self.reader.source.split(first["o"], last["o"], tasks))
        if len(parts) > tasks:
            raise ConnectError(f"split gave {len(parts)} parts, and tasks.max is {tasks}")
        return parts
