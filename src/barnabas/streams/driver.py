"""The test driver: runs an application without Spark and without a broker, with a clock that the test moves.

::

    with drive(app) as driver:
        driver.send("lines", value="a b a", at=0)
        assert driver.table("word-counts") == {"a": 2, "b": 1}
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from barnabas.client.serdes.serde import Place
from barnabas.streams.app import App
from barnabas.streams.durations import Duration, milliseconds
from barnabas.streams.errors import StreamsError
from barnabas.streams.runtime.key_value_store import TimestampedStore
from barnabas.streams.runtime.store import StateStore
from barnabas.streams.runtime.task import Commit, Headers, InputRecord, Row, Task
from barnabas.streams.serdes import SerdeLike, codec_of
from barnabas.streams.topology.copartition import check_partitions, task_counts
from barnabas.streams.topology.node import Topology
from barnabas.streams.topology.operators import Sink, Source
from barnabas.wire.key_hash import murmur2

__all__ = ["Driver", "Output"]


class Output(NamedTuple):
    """A record that the application wrote."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers
    partition: int


class Driver:
    """Runs an application for a test; made by :func:`drive`."""

    def __init__(self, app: App, *, partitions: Mapping[str, int] | int = 1, start: int | datetime = 0) -> None:
        self._topology: Topology = app.topology()
        self._on_error = app.on_error
        self._time_ms = int(start.timestamp() * 1000) if isinstance(start, datetime) else start
        self._given = partitions
        self._partitions = self._size()
        self._offsets: dict[tuple[str, int], int] = {}
        self._written: dict[str, list[Row]] = {}
        self._read: dict[str, int] = {}  # how many rows of a topic were read
        self._changelog: list[Row] = []
        self._batch = 0
        self._tasks: dict[tuple[int, int], Task] = {}
        self._readers = {topic: each.number for each in self._topology.sub_topologies for topic in each.topics}
        self._globals: dict[str, StateStore] = {}
        for each in self._topology.sub_topologies:
            if each.is_global:
                self._globals |= self._task(each.number, 0).stores
        for number, count in task_counts(self._topology, self._partitions).items():
            for partition in range(count):
                self._task(number, partition)

    def _size(self) -> dict[str, int]:
        topology, given = self._topology, self._given
        outside = dict.fromkeys([*topology.source_topics, *topology.sink_topics], 1)
        if isinstance(given, int):
            outside = dict.fromkeys(outside, given)
        else:
            outside |= given
        outside |= {name: source.frame_partitions for name, source in topology.frames.items()}
        return outside | check_partitions(topology, outside)

    def _task(self, number: int, partition: int) -> Task:
        task = self._tasks.get((number, partition))
        if task is None:
            task = self._tasks[number, partition] = Task(
                self._topology,
                number,
                partition,
                partitions=self._partitions,
                on_error=self._on_error,
                globals=self._globals,
            )
            task.begin(time_ms=self._time_ms, seed=self._batch)
        return task

    @property
    def time(self) -> int:
        """The driver's wall-clock time, in milliseconds."""
        return self._time_ms

    def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        at: int | datetime | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
    ) -> None:
        """Send a record to a source topic and process it completely.

        topic: name of the topic.
        value, key: objects of the types of the source; None is a null.
        at: timestamp, in milliseconds or as a datetime; by default the driver's time.
        headers: headers of the record.
        partition: number of the partition; by default chosen by the hash of the key.
        """
        source = self._source(topic)
        key_bytes = None if key is None else codec_of(source.key, Place(topic, is_key=True)).encode(key)
        value_bytes = None if value is None else codec_of(source.value, Place(topic)).encode(value)
        self.send_bytes(topic, key_bytes, value_bytes, at=at, headers=headers, partition=partition)

    def send_bytes(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        at: int | datetime | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
    ) -> None:
        """Send a record of bytes, for example one that cannot be decoded; the arguments are those of :meth:`send`."""
        self._source(topic)
        timestamp = self._time_ms if at is None else int(at.timestamp() * 1000) if isinstance(at, datetime) else at
        count = self._partitions.get(topic, 1)
        if partition is None:
            partition = 0 if key is None else (murmur2(key) & 0x7FFFFFFF) % count
        self._run([self._input(topic, partition, timestamp, key, value, tuple(headers))])

    def send_all(self, topic: str, values: Iterable[Any], *, key: Any = None, at: int | None = None) -> None:
        """Send several values, one after the other.

        topic: name of the topic.
        values: objects of the source's type.
        key: key of all records.
        at: timestamp of all records, in milliseconds.
        """
        for value in values:
            self.send(topic, value, key=key, at=at)

    def advance(self, duration: Duration) -> None:
        """Move the wall-clock time forward and call the wall-clock punctuators that are due.

        duration: a ``timedelta`` or a text such as ``"1m"``.
        """
        self._time_ms += milliseconds(duration)
        self._run([])

    def read(
        self, topic: str, *, key: SerdeLike[Any] | None = None, value: SerdeLike[Any] | None = None
    ) -> list[Output]:
        """Return the records that were written to a topic since the last call.

        topic: name of the topic.
        key, value: types or serdes to read with; by default those that the sink wrote with.
        """
        return [self._output(row, key, value) for row in self.read_rows(topic)]

    def read_rows(self, topic: str) -> list[Row]:
        """Return the records that were written to a topic since the last call, as bytes."""
        written = self._written.get(topic, [])
        rows = written[self._read.get(topic, 0) :]
        self._read[topic] = len(written)
        return rows

    def table(self, topic: str) -> dict[Any, Any]:
        """Return the newest value of each key that was written to a topic since the start."""
        found: dict[Any, Any] = {}
        for row in self._written.get(topic, []):
            output = self._output(row, None, None)
            if output.value is None:
                found.pop(output.key, None)
            else:
                found[output.key] = output.value
        return found

    def store(self, name: str) -> dict[Any, Any]:
        """Return the contents of a key-value store or of the store of a table, over all tasks.

        name: name of the store. Raises :class:`StreamsError` if the application has no such store.
        """
        found: dict[Any, Any] = {}
        stores = [task.stores[name] for task in self._tasks.values() if name in task.stores]
        if not stores:
            known = ", ".join(self._topology.stores) or "none"
            raise StreamsError(f"the application has no store {name}; its stores are: {known}")
        for store in stores:
            data = getattr(store, "data", {})
            is_timestamped = isinstance(store, TimestampedStore)
            found |= {key: entry[0] if is_timestamped else entry for key, entry in data.items()}
        return found

    def changelog(self) -> list[Row]:
        """Return the rows that were written to changelog topics since the last call."""
        rows, self._changelog = self._changelog, []
        return rows

    def restart(self) -> None:
        """Replace all tasks by new ones with the state of the old ones, as after a crash and a restore."""
        states = {place: self._state(place) for place in self._tasks}
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()
        self._globals.clear()
        for (number, partition), chunks in states.items():
            task = Task(
                self._topology,
                number,
                partition,
                partitions=self._partitions,
                on_error=self._on_error,
                globals=self._globals,
            )
            task.restore(chunks)
            self._tasks[number, partition] = task
            if task.sub_topology.is_global:
                self._globals |= task.stores

    def _keep(self, place: tuple[int, int], commit: Commit) -> None:
        """Keep what a task changed; a host writes the blobs to its state."""
        self._changelog += commit.changelog

    def _state(self, place: tuple[int, int]) -> list[bytes]:
        """Return the blobs from which a task is restored."""
        return list(self._tasks[place].snapshot())

    def close(self) -> None:
        """Close the processors."""
        for task in self._tasks.values():
            task.close()

    def _source(self, topic: str) -> Source:
        for node in self._topology.nodes.values():
            source = node.operator
            if not isinstance(source, Source) or source.is_internal:
                continue
            if topic in source.topics or (source.pattern is not None and source.pattern.fullmatch(topic)):
                return source
        known = ", ".join(self._topology.source_topics) or "none"
        raise StreamsError(f"the application does not read topic {topic}; it reads: {known}")

    def _reader(self, topic: str) -> int:
        number = self._readers.get(topic)
        if number is None:
            source = self._source(topic)
            number = self._readers[topic] = next(
                each.number for each in self._topology.sub_topologies if any(n.operator is source for n in each.nodes)
            )
        return number

    def _input(
        self, topic: str, partition: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> InputRecord:
        offset = self._offsets.get((topic, partition), 0)
        self._offsets[topic, partition] = offset + 1
        return topic, partition, offset, timestamp, key, value, headers

    def _run(self, records: list[InputRecord]) -> None:
        """Process records, and what they send to other sub-topologies, until nothing is left; then commit."""
        self._batch += 1
        for task in self._tasks.values():
            task.begin(time_ms=self._time_ms, seed=self._batch)
        waiting: dict[tuple[str, int], deque[InputRecord]] = {}
        for record in records:
            waiting.setdefault(record[:2], deque()).append(record)
        if not records:
            for task in list(self._tasks.values()):
                self._deliver(task.punctuate(), waiting)
        while waiting:
            place = min(waiting, key=lambda each: waiting[each][0][3])
            record = waiting[place].popleft()
            if not waiting[place]:
                del waiting[place]
            number = self._reader(record[0])
            is_global = self._topology.sub_topologies[number].is_global
            task = self._task(number, 0 if is_global else record[1])
            self._deliver(task.process([record]), waiting)
        for which, task in self._tasks.items():
            self._keep(which, task.commit())

    def _deliver(self, rows: list[Row], waiting: dict[tuple[str, int], deque[InputRecord]]) -> None:
        for row in rows:
            if not row.is_internal:
                self._written.setdefault(row.topic, []).append(row)
                if row.topic not in self._topology.source_topics:
                    continue
            partition = self._partition(row)
            record = self._input(row.topic, partition, row.timestamp, row.key, row.value, row.headers)
            waiting.setdefault((row.topic, partition), deque()).append(record)

    def _partition(self, row: Row) -> int:
        if row.partition is not None:
            return row.partition
        return 0 if row.key is None else (murmur2(row.key) & 0x7FFFFFFF) % self._partitions.get(row.topic, 1)

    def _output(self, row: Row, key: SerdeLike[Any] | None, value: SerdeLike[Any] | None) -> Output:
        sinks = [node.operator for node in self._topology.nodes.values() if isinstance(node.operator, Sink)]
        sink = next((each for each in sinks if each.topic == row.topic), None)
        if sink is None:
            sink = next((each for each in sinks if each.extractor is not None), None)
        if sink is None:  # a dead letter: the bytes of the input record
            sink = Sink(row.topic, None, bytes, bytes)
        key_codec = codec_of(key or sink.key, Place(row.topic, is_key=True))
        value_codec = codec_of(value or sink.value, Place(row.topic))
        return Output(
            None if row.key is None else key_codec.decode(row.key),
            None if row.value is None else value_codec.decode(row.value),
            row.timestamp,
            row.headers,
            self._partition(row),
        )
