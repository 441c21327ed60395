"""A light source in the driver: a thread that reads ahead, so that only what has been fetched is ever promised.

A connector that fails or hangs does not advance, and hurts no other of its lane.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from barnabas.connect.chain import Outgoing
from barnabas.connect.driver.prepared import Prepared
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins import PollSource, Source
from barnabas.connect.records import Cursor, Entry, Limit, Offset, Record

RECORDS_MAX: Final = 5000  # of one connector in one batch
BATCH_BYTES_MAX: Final = 1024 * 1024
POLL_BYTES_MAX: Final = 16 * 1024 * 1024  # of one call of a polling source, which cannot be cut
CURSOR: Final = "cursor"


@dataclass(slots=True)
class Range:
    """What has been fetched: records between two offsets."""

    since: Offset
    until: Offset
    rows: list[Outgoing]


class Reader:
    """Reads ranges of a source, whichever kind it is."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.source: Any = prepared.instance()

    @property
    def is_polled(self) -> bool:
        """Return whether a range cannot simply be read again."""
        return isinstance(self.source, PollSource)

    def start(self) -> Offset:
        """Return where a new connector begins."""
        if isinstance(self.source, Source):
            return self.source.start()
        return {CURSOR: None}

    def fetch(self, since: Offset) -> Range:
        """Return what is new; an empty range if nothing is."""
        if isinstance(self.source, Source):
            until = self.source.latest(since, Limit(RECORDS_MAX, BATCH_BYTES_MAX))
            return Range(since, until, [] if until == since else self.read(since, until))
        return self._polled(since)

    def read(self, since: Offset, until: Offset) -> list[Outgoing]:
        """Return the rows of a range."""
        if isinstance(self.source, Source):
            parts = self.source.split(since, until, 1)
            records = (record for part in parts for record in self.source.read(part))
            return list(self.prepared.outgoing(records, self.prepared.errors(0)))
        found = self._polled(since)
        if found.until != until:
            raise ConnectError(f"the source cannot be replayed: it gave {found.until}, and {until} before")
        return found.rows

    def _polled(self, since: Offset) -> Range:
        last = since

        def records() -> Iterator[Record]:
            nonlocal last
            for each in self.source.poll(since[CURSOR]):
                if isinstance(each, Cursor):
                    last = {CURSOR: each.position}
                else:
                    yield each

        rows = list(self.prepared.outgoing(records(), self.prepared.errors(0)))
        size = sum(len(row.value or b"") + len(row.key or b"") for row in rows)
        if size > POLL_BYTES_MAX:
            raise ConnectError(f"one call of the source gave {size} bytes; at most {POLL_BYTES_MAX} fit into a batch")
        if rows and last == since:
            raise ConnectError("the source gave records and no new cursor after them")
        return Range(since, last, rows)

    def entries(self, offset: Offset) -> list[Entry]:
        """Return an offset as Kafka Connect shows it."""
        if isinstance(self.source, Source):
            return self.source.entries(offset)
        return [Entry({"connector": self.prepared.spec.name}, offset)]

    def offset(self, entries: list[Entry]) -> Offset:
        """Return the offset of stored entries."""
        if isinstance(self.source, Source):
            return self.source.offset(entries)
        return dict(entries[0].offset or {CURSOR: None})

    def details(self) -> dict[str, Any]:
        """Return facts about the source."""
        return dict(self.source.details()) if isinstance(self.source, Source) else {}

    def committed(self, until: Offset) -> None:
        """Tell the source that it may forget."""
        if isinstance(self.source, Source):
            self.source.committed(until)


class Feed:
    """The thread that reads ahead by one range."""

    def __init__(self, reader: Reader, position: Offset, on_failure: Callable[[BaseException], None]) -> None:
        self.reader = reader
        self._position = position
        self._ready: Range | None = None
        self._is_paused = False
        self._is_stopped = False
        self._on_failure = on_failure
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"feed-{reader.prepared.spec.name}", daemon=True)
        self._thread.start()

    @property
    def next_since(self) -> Offset:
        """Return where the next range begins."""
        with self._changed:
            return self._position if self._ready is None else self._ready.since

    def restarted(self, position: Offset) -> Feed:
        """Return a feed that goes on from another offset, in place of this one."""
        self.stop()
        made = Feed(Reader(self.reader.prepared), position, self._on_failure)
        made.pause(is_paused=self._is_paused)
        return made

    def take(self, since: Offset) -> Range | None:
        """Return the range after an offset, if it has been fetched; the thread goes on with the next one."""
        with self._changed:
            ready = self._ready
            if ready is None or self._is_paused or ready.since != since:
                return None
            self._ready, self._position = None, ready.until
            self._changed.notify_all()
            return ready

    def pause(self, *, is_paused: bool) -> None:
        """Stop or go on fetching."""
        with self._changed:
            self._is_paused = is_paused
            self._changed.notify_all()

    def stop(self) -> None:
        """End the thread after the call under way."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _run(self) -> None:
        seconds = self.reader.prepared.seconds
        try:
            while self._wait():
                found = self.reader.fetch(self._position)
                with self._changed:
                    if found.until != found.since:
                        self._ready = found
                    elif not self._is_stopped:
                        self._changed.wait(seconds)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything: its connector fails, no other
            if not self._is_stopped:
                self._on_failure(error)
        finally:
            self.reader.source.close()

    def _wait(self) -> bool:
        """Wait until there is room for another range; return whether to go on."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped or (self._ready is None and not self._is_paused))
            return not self._is_stopped
