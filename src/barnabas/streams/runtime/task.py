"""A task: one sub-topology on one partition. It takes records in and gives records out; a host does the rest.

The host is ``drive()`` in tests and a stateful operator of Spark in production. It owns clocks, partitions, routing and
persistence. The interface, in the order in which a host uses it for each batch::

    task = Task(topology, number, partition, partitions=..., on_error=app.on_error, globals=...)
    task.restore(chunks)                       # once, if there is state: blobs of snapshot() and then of commit()
    task.begin(time_ms=..., seed=...)          # for each batch: the wall-clock time and the seed of random numbers
    rows = task.process(records)               # input records, see below
    rows += task.punctuate()                   # wall-clock punctuators whose time has come at time_ms
    commit = task.commit()                     # what changed: blobs for the state, rows for changelog topics
    chunks = task.snapshot()                   # instead of the log of changes, whenever the host wants to compact it

*Input records* are tuples ``(topic, partition, offset, timestamp, key, value, headers)`` with bytes or None as key
and value: a ``ConsumerRecord`` of the client. Records of one topic and partition must be in the order of their
offsets. Between partitions the task chooses as Kafka does: the smallest timestamp at the head of a partition comes
first. The topic of an internal record is the internal topic's name without the application's id, its key and value
are those of the row.

*Output rows* are :class:`Row` tuples. A row with ``is_internal`` is a repartitioned record: it goes to the task of
``partition`` in the sub-topology that reads ``topic``, in the same order in which the rows of a task come. Other
rows go to the topic; ``partition`` is None if the producer's default partitioner is to choose.

*State.* All memory of a task is in its stores and cells, so a task that was restored continues as if nothing had
happened. ``commit()`` returns blobs of at most 1 MiB (unless a single entry is larger) with what changed since the
last call; restoring the blobs of a snapshot and then those of all later commits, in order, gives the same task. A
task whose batch failed must be dropped.

*Loops.* The sub-topologies of a foreign-key join send records to each other: the left side reads its own topics and the
responses to what it sent. A host that cannot send records back runs the left side twice, in two tasks with the same
number: the first gets the topics only, the second gets the topics and then, in a second call of ``process()``, the
responses. The rows of the second task's first call, and its changelog of stores that the first task has written, are
dropped. Such a host passes ``is_chained``: then every change of a left row is answered, because answers to the changes
before the last one of a batch are not used; some deletions of results are emitted that Kafka leaves out.

*Global tables.* A sub-topology with ``is_global`` is a task as well; it is fed with all partitions of its topic. Its
``stores`` are passed to the other tasks as ``globals``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.streams.errors import StateCorrupt
from barnabas.streams.policies import ErrorPolicy, Fail
from barnabas.streams.runtime.failures import Failures
from barnabas.streams.runtime.punctuators import Punctuators
from barnabas.streams.runtime.state_format import CHUNK_BYTES_MAX, Cells, decode_chunk, encode_chunks
from barnabas.streams.runtime.store import StateStore
from barnabas.streams.topology.node import Topology

__all__ = ["RECORD_BYTES_MAX", "Commit", "InputRecord", "Row", "Task"]

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
InputRecord: TypeAlias = tuple[str, int, int, int, bytes | None, bytes | None, Headers]
# Decoded record of a source: the function that processes it, key, value, timestamp, and the input record.
Decoded: TypeAlias = tuple[Callable[..., None], Any, Any, int, InputRecord]

_NO_RECORD: InputRecord = ("", -1, -1, -1, None, None, ())
_STREAM_TIME = "stream-time"
RECORD_BYTES_MAX: Final = 1024 * 1024  # the default of the producer's max.request.size


class Row(NamedTuple):
    """One output record of a task; see the module."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    is_internal: bool = False


@dataclass(frozen=True)
class Commit:
    """What a batch changed: blobs for the state, and rows for the changelog topics of named stores."""

    chunks: list[bytes]
    changelog: list[Row]


class Task:
    """A sub-topology on one partition; see the module.

    topology: the topology.
    number: number of the sub-topology.
    partition: number of the partition.
    partitions: number of partitions of internal topics, and of output topics that have a custom partitioner.
    on_error: policy of the application.
    globals: stores of global tables by name.
    is_chained: the host runs the sides of a foreign-key join one after the other in each batch.
    record_bytes_max: largest value that can be written; a larger one is an error of its record.
    """

    def __init__(
        self,
        topology: Topology,
        number: int,
        partition: int,
        *,
        partitions: Mapping[str, int],
        on_error: ErrorPolicy | None = None,
        globals: Mapping[str, StateStore] | None = None,  # noqa: A002 - the noun of the interface
        is_chained: bool = False,
        record_bytes_max: int = RECORD_BYTES_MAX,
    ) -> None:
        from barnabas.streams.runtime.wiring import Wiring

        self.topology = topology
        self.sub_topology = topology.sub_topologies[number]
        self.partition = partition
        self.is_chained = is_chained
        self.record_bytes_max = record_bytes_max
        self.name = f"{number}_{partition}"
        self.cells: Cells = {}
        self.clock = self.cell(_STREAM_TIME, -1)  # stream time: the largest timestamp so far
        self.time_ms = 0  # wall-clock time of the batch
        self.random = Random(0)  # noqa: S311 - seeded, so that a batch that is repeated has the same results
        self.record: InputRecord = _NO_RECORD  # the input record that is being processed
        self.rows: list[Row] = []
        self.failures = Failures(self, on_error if on_error is not None else Fail())
        self.punctuators = Punctuators(self)
        self.dropped: dict[str, int] = {}  # node -> records that it dropped: late, or without a key
        wiring = Wiring(self, partitions, globals or {})
        self.stores: dict[str, StateStore] = wiring.stores
        self._decoders = wiring.decoders
        self._patterns = wiring.pattern_decoders
        self._processors = wiring.processors
        self._start: list[Callable[[], None]] = wiring.starters
        self._is_started = False

    @property
    def stream_time(self) -> int:
        """The largest timestamp of the records so far, or -1."""
        return self.clock[0]

    def cell(self, name: str, *values: int) -> list[int]:
        """Return a list of numbers that is part of the state; nodes call it when they are wired."""
        return self.cells.setdefault(name, list(values))

    def drop(self, node: str) -> None:
        """Count a record that a node dropped."""
        self.dropped[node] = self.dropped.get(node, 0) + 1

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Restore the state from blobs. Raises :class:`StateCorrupt` if one does not fit this task."""
        for chunk in chunks:
            cells, entries = decode_chunk(chunk)
            for name, values in cells.items():
                if name in self.cells:
                    self.cells[name][:] = values
                else:
                    self.cells[name] = values
            for name, key, value in entries:
                store = self.stores.get(name)
                if store is None:
                    raise StateCorrupt(
                        f"the state has a store {name}, which sub-topology {self.sub_topology.number} does not have"
                    )
                store.restore(key, value)

    def begin(self, *, time_ms: int, seed: int | str) -> None:
        """Start a batch.

        time_ms: wall-clock time of the batch; wall-clock punctuators and processors see it.
        seed: seed of the random numbers of processors; the same for a batch that is repeated.
        """
        self.time_ms = time_ms
        self.random.seed(f"{self.topology.application_id}/{self.name}/{seed}")
        if not self._is_started:
            self._is_started = True
            for start in self._start:
                start()

    def process(self, records: Iterable[InputRecord]) -> list[Row]:
        """Process records and return the output, in order."""
        queues: dict[tuple[str, int], list[InputRecord]] = {}
        for record in records:
            queues.setdefault((record[0], record[1]), []).append(record)
        if len(queues) == 1:
            ((topic, _), only) = queues.popitem()
            self._run(self._decoded(topic, only))
        elif queues:
            self._run(self._merged(queues))
        return self._take_rows()

    def punctuate(self) -> list[Row]:
        """Call the wall-clock punctuators whose time has come, and return the output."""
        self.record = _NO_RECORD
        self.punctuators.by_wall_clock(self.time_ms)
        return self._take_rows()

    def commit(self) -> Commit:
        """Return what changed since the last call."""
        changelog: list[Row] = []
        for store in self.stores.values():
            if store.spec.is_named and store.changed:
                topic = self.topology.changelog(store.name)
                changelog += [Row(topic, self.partition, *entry[:2], (), entry[2]) for entry in store.changelog()]
        entries = ((store.name, key, value) for store in self.stores.values() for key, value in store.take_changes())
        return Commit(list(encode_chunks(self.cells, entries)), changelog)

    def snapshot(self, limit: int = CHUNK_BYTES_MAX) -> Iterator[bytes]:
        """Iterate over blobs with the whole state."""
        entries = ((store.name, key, value) for store in self.stores.values() for key, value in store.snapshot())
        return encode_chunks(self.cells, entries, limit)

    def close(self) -> None:
        """Close the processors."""
        for processor in self._processors:
            processor.close()

    def _take_rows(self) -> list[Row]:
        rows = self.rows
        taken = rows[:]
        rows.clear()
        return taken

    def _decoded(self, topic: str, records: list[InputRecord]) -> Iterator[Decoded]:
        decode = self._decoders.get(topic)
        if decode is None:
            decode = next(found for pattern, found in self._patterns if pattern.fullmatch(topic))
        return decode(records)

    def _run(self, decoded: Iterator[Decoded]) -> None:
        clock = self.clock
        punctuators = self.punctuators
        for process, key, value, timestamp, record in decoded:
            self.record = record
            if timestamp > clock[0]:
                clock[0] = timestamp
            try:
                process(key, value, timestamp, record[6])
            except Exception as error:  # noqa: BLE001 - an error that no node has handled
                self.failures.uncaught(error)
            if punctuators.next_stream_time <= clock[0]:
                punctuators.by_stream_time(clock[0])

    def _merged(self, queues: Mapping[tuple[str, int], list[InputRecord]]) -> Iterator[Decoded]:
        """Decoded records of several partitions: always the head with the smallest timestamp."""
        heads: list[tuple[int, int, Decoded, Iterator[Decoded]]] = []
        serial = 0
        for (topic, _), records in sorted(queues.items()):
            decoded = self._decoded(topic, records)
            for first in decoded:
                heads.append((first[3], serial, first, decoded))
                serial += 1
                break
        heapq.heapify(heads)
        while heads:
            _, _, head, decoded = heads[0]
            yield head
            following = next(decoded, None)
            if following is None:
                heapq.heappop(heads)
            else:
                heapq.heapreplace(heads, (following[3], serial, following, decoded))
                serial += 1
