"""The topic with the state of all tasks of an application, from which a lost checkpoint is rebuilt.

Each batch of a task writes the chunks that it appends to its state (``state.py``) to this compacted topic too, in the
transaction that has the task's output and source offsets. So the topic and the offsets always fit each other. The key
of a record is ``task/sequence/piece``; a null value deletes a chunk that a snapshot has replaced. A chunk has at most
1 MiB unless one entry of a store is larger; one larger than PIECE_BYTES_MAX is several records::

    byte 0       format of this header (1)
    byte 1       kind: 0 changes, 1 snapshot
    byte 2       part: 0 the task, 1 and up the copies of global tables that it has
    bytes 3-10   first chunk that counts, as of this version of the state
    bytes 11-12  number of pieces of the chunk
    bytes 13-    piece of the chunk

Reading needs the client only; nothing here imports Spark.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.streams.errors import StateCorrupt
from barnabas.streams.host.state import Chunk, Entry

__all__ = ["PARTITIONS_MAX", "Restored", "StateTopic", "assemble", "records_of_entries"]

FORMAT: Final = 1
PARTITIONS_MAX: Final = 32
PIECE_BYTES_MAX: Final = 4 * 1024 * 1024
MESSAGE_BYTES_MAX: Final = 8 * 1024 * 1024  # of the topic and of requests of the producer
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 * 1024 * 1024),
    "max.message.bytes": str(MESSAGE_BYTES_MAX),
}
_HEADER: Final = struct.Struct(">BBBqH")


class Restored(NamedTuple):
    """The state of a task as the topic has it: its chunks, the first one that is stored, the number of the next."""

    chunks: list[Chunk]
    kept: int
    next: int


@dataclass(frozen=True)
class StateTopic:
    """The state topic of an application; plain data that is sent to the workers.

    name: name of the topic.
    partitions: its number of partitions. The records of a task are in the partition ``task % partitions``.
    client: settings of the client.
    ends: offsets of the partitions up to which state is restored, if the checkpoint was rebuilt from the cluster.
    """

    name: str
    partitions: int
    client: Mapping[str, str] = field(repr=False)  # may have passwords
    ends: Mapping[int, int] | None = None

    def partition(self, task: int) -> int:
        return task % self.partitions

    def restore(self, task: int, place: str) -> Restored | None:
        """Read the state of a task, or return None if there is none."""
        from barnabas.streams.host.state_reading import read_partition

        partition = self.partition(task)
        end = (self.ends or {}).get(partition, 0)
        return assemble(read_partition(self.name, partition, end, self.client), place) if end else None


def topic_name(application_id: str) -> str:
    """The name of the state topic; Kafka's tools take it for a changelog and delete it with the others."""
    return f"{application_id}-task-state-changelog"


def records_of_entries(place: str, entries: Iterable[Entry], first: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values of the records for what a batch of a task wrote and deleted.

    place: name of the task. first: first chunk that counts, as of the new version.
    """
    for entry in entries:
        if entry.chunk is None:
            yield _key(place, entry.sequence, 0), None
            continue
        content = entry.chunk.content
        starts = range(0, len(content), PIECE_BYTES_MAX) if content else range(1)
        for piece, start in enumerate(starts):
            header = _HEADER.pack(FORMAT, entry.kind, entry.chunk.part, first, len(starts))
            yield _key(place, entry.sequence, piece), header + content[start : start + PIECE_BYTES_MAX]


def assemble(records: Iterable[tuple[bytes, bytes | None]], place: str) -> Restored | None:
    """The state of a task from records of its partition, in order; None if there is none.

    Raises StateCorrupt if chunks are missing.
    """
    prefix = f"{place}/".encode()
    pieces: dict[int, dict[int, bytes]] = {}
    for key, value in records:
        if not key.startswith(prefix):
            continue
        sequence, piece = map(int, key[len(prefix) :].split(b"/"))
        if value is None:
            pieces.pop(sequence, None)
        else:
            pieces.setdefault(sequence, {})[piece] = value
    if not pieces:
        return None
    newest = max(pieces)
    first = _header(place, newest, pieces[newest])[3]
    chunks = [_chunk(place, sequence, pieces.get(sequence, {})) for sequence in range(first, newest + 1)]
    return Restored(chunks, min(pieces), newest + 1)


def _key(place: str, sequence: int, piece: int) -> bytes:
    return f"{place}/{sequence}/{piece}".encode()


def _header(place: str, sequence: int, pieces: Mapping[int, bytes]) -> tuple[int, ...]:
    header = next(iter(pieces.values()), b"")
    if len(header) < _HEADER.size or header[0] != FORMAT:
        raise StateCorrupt(f"chunk {sequence} of task {place} is missing in the state topic, or damaged")
    return _HEADER.unpack_from(header)


def _chunk(place: str, sequence: int, pieces: Mapping[int, bytes]) -> Chunk:
    _, _, part, _, count = _header(place, sequence, pieces)
    if sorted(pieces) != list(range(count)):
        raise StateCorrupt(f"chunk {sequence} of task {place} is incomplete in the state topic")
    return Chunk(part, b"".join(pieces[piece][_HEADER.size :] for piece in range(count)))
