"""The state of a task in Spark's state store: a log of chunks, of which the newest snapshot and all that follows count.

Each batch appends chunks with what changed. When the log has grown to several times the size of the last snapshot, a
new snapshot is appended, and the chunks before it are deleted in later batches, so that a worker that is a few
batches behind can still catch up by the changes alone. A chunk is at most 1 MiB (unless one entry of a store is
larger)::

    byte 0       format of this header (1)
    byte 1       kind: 0 changes, 1 snapshot
    byte 2       part: 0 the task, 1 and up the copies of global tables that it has
    bytes 3-10   token: random, new for each version of the state
    bytes 11-    chunk of the task, with a version byte of its own

The same chunks leave with the output of the batch, so that a lost checkpoint can be rebuilt (``state_topic.py``).

The *head* says which chunks exist. A worker keeps tasks between batches; a kept task is used if its token is the
state's, so a task that an attempt has changed which was then repeated elsewhere is never used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from barnabas.streams.errors import StateCorrupt, StreamsError

__all__ = ["CHUNKS", "HEAD", "Chunk", "Entry", "Head", "StateLog", "StateTooLarge"]

FORMAT: Final = 1
CHANGES, SNAPSHOT = 0, 1  # kinds of chunks
TOKEN_BYTES: Final = 8
HEADER_BYTES: Final = 3 + TOKEN_BYTES
GROWTH_MAX: Final = 4  # the log may grow to this many times the size of the last snapshot
NEAR_LIMIT_GROWTH: Final = 0.25  # the same when the state may be near its limit
LOG_BYTES_MIN: Final = 1024 * 1024  # a shorter log is never replaced by a snapshot
DELETED_MIN: Final = 16  # old chunks that a batch deletes, at least
STATE_BYTES_MAX: Final = 100 * 1024 * 1024  # default of task.state.max.bytes
# Columns of Spark's state variables.
HEAD: Final = "format int, kept long, first long, next long, token binary, snapshot_bytes long, log_bytes long"
CHUNKS: Final = ("sequence long", "chunk binary")


class ValueState(Protocol):
    """Spark's state variable with one value for a task."""

    def get(self) -> tuple[Any, ...] | None: ...
    def update(self, newValue: tuple[Any, ...]) -> None: ...  # noqa: N803


class MapState(Protocol):
    """Spark's state variable with a map for a task."""

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None: ...  # noqa: N802
    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None: ...  # noqa: N802
    def removeKey(self, key: tuple[Any, ...]) -> None: ...  # noqa: N802


class StateTooLarge(StreamsError):
    """The state of a task is larger than ``task.state.max.bytes``."""


class Head(NamedTuple):
    """Which chunks there are: ``kept`` is the first that is stored, ``first`` the first that counts."""

    format: int = FORMAT
    kept: int = 0
    first: int = 0
    next: int = 0
    token: bytes = b""
    snapshot_bytes: int = 0
    log_bytes: int = 0


class Chunk(NamedTuple):
    """A part of the state: of the task itself (part 0) or of a copy of a global table."""

    part: int
    content: bytes


class Entry(NamedTuple):
    """A chunk that a batch wrote, or deleted (``chunk`` is None)."""

    sequence: int
    kind: int
    chunk: Chunk | None


class StateLog:
    """The state of one task, within one batch. ``entries`` is what the batch wrote and deleted."""

    def __init__(self, head: ValueState, chunks: MapState, *, task: str, bytes_max: int = STATE_BYTES_MAX) -> None:
        self._head_state = head
        self._chunks = chunks
        self._task = task
        self._bytes_max = bytes_max
        self._is_adopted = False
        self.entries: list[Entry] = []
        found = head.get()
        self.head = Head() if found is None else Head(*found)
        if self.head.format != FORMAT:
            raise StateCorrupt(
                f"the state of task {task} has format {self.head.format}; this release reads format {FORMAT}: "
                f"run the release that wrote it, or start with a new checkpoint"
            )

    @property
    def is_new(self) -> bool:
        """Whether the task has no state yet."""
        return self.head.next == 0

    def adopt(self, kept: int, following: int) -> None:
        """Continue a log that was restored from elsewhere: the next version is written as a snapshot.

        kept: first chunk of that log. following: number of the next chunk.
        """
        self.head = Head(kept=kept, first=kept, next=following)
        self._is_adopted = True

    def whole(self) -> Iterator[Chunk]:
        """The chunks from which the task is restored."""
        for sequence in range(self.head.first, self.head.next):
            _, _, chunk = self._read(sequence)
            yield chunk

    def since(self, position: int, token: bytes) -> Iterator[Chunk] | None:
        """The changes since a version of the state, or None if the log does not lead there.

        position: ``next`` of the head of that version. token: its token.
        """
        head = self.head
        if position == head.next:
            return iter(()) if token == head.token else None
        if not head.kept < position < head.next or self._read(position - 1)[1] != token:
            return None
        return self._changes(position)

    def append(self, changes: Iterable[Chunk], snapshot: Iterable[Chunk], token: bytes) -> Head:
        """Write a new version: the changes and, if the log has become long, a snapshot, which is made only then.

        Raises StateTooLarge if the snapshot exceeds the limit.
        """
        assert len(token) == TOKEN_BYTES
        head = self.head
        following, written = self._write(CHANGES, changes, head.next, token)
        count = following - head.next
        log_bytes = head.log_bytes + written
        first, snapshot_bytes = head.first, head.snapshot_bytes
        if self._is_adopted or self._is_long(snapshot_bytes, log_bytes):
            first = following
            following, snapshot_bytes = self._write(SNAPSHOT, snapshot, following, token)
            log_bytes = 0
            if snapshot_bytes > self._bytes_max:
                raise StateTooLarge(
                    f"the state of task {self._task} has {snapshot_bytes:,} bytes; task.state.max.bytes is "
                    f"{self._bytes_max:,}: give the topics more partitions, so that tasks are smaller, let entries "
                    f"expire, or raise the limit (spark.barnabas.task.state.max.bytes) if the workers have the memory"
                )
        kept = self._delete(head, max(DELETED_MIN, 2 * count))
        self.head = Head(FORMAT, kept, first, following, token, snapshot_bytes, log_bytes)
        self._head_state.update(tuple(self.head))
        return self.head

    def _is_long(self, snapshot_bytes: int, log_bytes: int) -> bool:
        is_near_limit = snapshot_bytes + log_bytes > self._bytes_max
        growth = NEAR_LIMIT_GROWTH if is_near_limit else GROWTH_MAX
        return log_bytes > max(LOG_BYTES_MIN if not is_near_limit else 0, growth * snapshot_bytes)

    def _delete(self, head: Head, count: int) -> int:
        """Delete chunks before the snapshot of an earlier batch; returns the first that is left."""
        end = min(head.first, head.kept + count)
        for sequence in range(head.kept, end):
            self._chunks.removeKey((sequence,))
            self.entries.append(Entry(sequence, CHANGES, None))
        return max(head.kept, end)

    def _write(self, kind: int, chunks: Iterable[Chunk], sequence: int, token: bytes) -> tuple[int, int]:
        size = 0
        for chunk in chunks:
            blob = bytes((FORMAT, kind, chunk.part)) + token + chunk.content
            self._chunks.updateValue((sequence,), (blob,))
            self.entries.append(Entry(sequence, kind, chunk))
            sequence += 1
            size += len(blob)
        return sequence, size

    def _read(self, sequence: int) -> tuple[int, bytes, Chunk]:
        found = self._chunks.getValue((sequence,))
        if found is None:
            raise StateCorrupt(f"chunk {sequence} of the state of task {self._task} is missing")
        blob = bytes(found[0])
        if len(blob) < HEADER_BYTES or blob[0] != FORMAT:
            raise StateCorrupt(f"chunk {sequence} of the state of task {self._task} is damaged")
        return blob[1], blob[3:HEADER_BYTES], Chunk(blob[2], blob[HEADER_BYTES:])

    def _changes(self, position: int) -> Iterator[Chunk]:
        for sequence in range(position, self.head.next):
            kind, _, chunk = self._read(sequence)
            if kind == CHANGES:
                yield chunk
