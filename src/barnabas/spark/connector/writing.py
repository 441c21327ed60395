"""A task's rows into topics: what runs in an executor. ``ending.py`` is what the driver does after that.

With ``exactly_once`` a task writes in a transaction and leaves it open; the driver ends those of all tasks. A batch
that comes a second time finds its markers and writes only what was not committed. A table::

    marker of the task   what the task does
    none, or older       writes records and marker, hands the transaction over
    this batch           aborts the transaction; the rows must be as many and as large as they were,
                         unless onReplay=keep
    newer                stops: the checkpoint is older than what was written

The marker is looked up while the first rows are on their way, since nearly always it is an older one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.client.group.commits import GroupMetadata
from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.errors import BarnabasError
from barnabas.spark.connector.decisions import transactional_id
from barnabas.spark.connector.ending import Written
from barnabas.spark.connector.link import Link, link
from barnabas.spark.connector.markers import Content, Marker, Slot, ensure_topic
from barnabas.spark.connector.offsets import Offsets, from_json
from barnabas.spark.connector.sink_options import AT_LEAST_ONCE, KEEP, SinkOptions
from barnabas.spark.errors import BatchChanged, InvalidOption
from barnabas.spark.processes.memory import trim

if TYPE_CHECKING:
    import pyarrow


class Batch:
    """Whose rows these are: a batch of a stream if the sink shall notice it when it comes again."""

    def __init__(self, sink_id: str, task: int, batch_id: int | None, application_id: str | None = None) -> None:
        self.sink_id = sink_id
        self.task = task
        self.batch_id = batch_id
        self.application_id = application_id

    @property
    def transactional_id(self) -> str:
        return transactional_id(self.application_id or self.sink_id, self.task)


def write(rows: Iterator[pyarrow.RecordBatch], options: SinkOptions, batch: Batch) -> Written:
    """Everything into the topics, acknowledged; in a transaction that is left open if that was asked for."""
    pieces = (piece for piece in rows if piece.num_rows)
    first = next(pieces, None)
    if first is None:
        return Written(Content())
    connection = link(ProducerSettings, options.settings)
    if options.guarantee == AT_LEAST_ONCE:
        written = _write_plainly(connection, options, _chain(first, pieces))
    else:
        written = _write_in_transaction(connection, options, batch, _chain(first, pieces))
    del first
    trim(written.content.size_bytes)
    return written


def _write_plainly(connection: Link, options: SinkOptions, pieces: Iterator[pyarrow.RecordBatch]) -> Written:
    producer = _producer(connection, options)
    try:
        sending = _Sending(connection, producer, options)
        for piece in pieces:
            sending.take(piece)
        sending.finish()
    finally:
        connection.run(producer.close())
    return Written(sending.content)


def _write_in_transaction(
    connection: Link, options: SinkOptions, batch: Batch, pieces: Iterator[pyarrow.RecordBatch]
) -> Written:
    producer = _producer(connection, options, batch.transactional_id)
    try:
        # This ends what an earlier attempt has left open, and waits for it: after that the marker can be trusted.
        connection.run(producer.begin_transaction())
        slot = Slot.of(batch.sink_id, batch.task)
        if batch.batch_id is not None:
            connection.run(ensure_topic(connection.cluster))
        reading = None if batch.batch_id is None else connection.start(slot.read(connection.cluster))
        sending = _Sending(connection, producer, options)
        for number, piece in enumerate(pieces):
            is_wanted = number == 0 or not _is_written(reading, batch)
            sending.take(piece, is_sent=is_wanted)
        if _is_written(reading, batch):
            sending.finish()
            assert reading is not None
            return _already(reading.result(), batch, sending.content, options)
        # Nothing waits for the last rows but the end, so the marker and the offsets go beside them.
        offsets = None
        if sending.offsets:
            group = GroupMetadata(options.offsets_group or "")
            offsets = connection.start(producer.send_offsets(sending.offsets, group))
        marking = None
        if batch.batch_id is not None:
            marking = connection.start(slot.write(producer, Marker(batch.batch_id, sending.content)))
        sending.finish()
        for waiting in (offsets, marking):
            if waiting is not None:
                waiting.result()
        return Written(sending.content, connection.run(producer.hand_over()), batch.sink_id, batch.task)
    finally:
        # What went wrong before says more than that there is nothing left to abort.
        with suppress(BarnabasError):
            connection.run(producer.close(flush=False))


def _is_written(reading: Future[Marker | None] | None, batch: Batch) -> bool:
    """Whether the task's marker, waited for, says that this batch or a later one was committed."""
    marker = None if reading is None else reading.result()
    return marker is not None and batch.batch_id is not None and marker.batch_id >= batch.batch_id


def _already(marker: Marker | None, batch: Batch, content: Content, options: SinkOptions) -> Written:
    """The result for a batch that the task has committed before.

    Raises BatchChanged if the checkpoint is older than the output, or if the content differs and must not.
    """
    assert marker is not None
    if batch.batch_id is None or marker.batch_id > batch.batch_id:
        raise BatchChanged(
            f"{batch.sink_id!r} has written batch {marker.batch_id} and is given batch {batch.batch_id} again: the "
            f"checkpoint is older than what was written. Start with a new checkpoint; what it reads is written again."
        )
    if content != marker.content and options.on_replay != KEEP:
        raise BatchChanged(
            f"task {batch.task} of batch {batch.batch_id} has written {marker.content} before the restart and would "
            f"write {content} now: the query or the number of its partitions has changed between. Start it once as it "
            f"was, so that the batch is completed, and change it then. If the content may differ, set onReplay=keep."
        )
    return Written(content)


class _Sending:
    """One piece is on its way while the next one comes from Spark; never two, so that rows stay in order."""

    def __init__(self, connection: Link, producer: Producer, options: SinkOptions) -> None:
        self._connection = connection
        self._producer = producer
        self._options = options
        self._under_way: Future[int] | None = None
        self.content = Content()
        self.offsets: Offsets = {}

    def take(self, piece: pyarrow.RecordBatch, *, is_sent: bool = True) -> None:
        if self._options.offsets_group is not None:
            piece, offsets = _without_offsets(piece)
            self.offsets |= offsets
        table = _selected(piece, self._options)
        self.content = self.content.plus(piece.num_rows, _size(table))
        self.finish()
        if is_sent and table.num_rows:
            self._under_way = self._connection.start(self._producer.send_arrow(table, self._options.topic))

    def finish(self) -> None:
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None


def _producer(connection: Link, options: SinkOptions, transactional_id: str | None = None) -> Producer:
    told = dict(options.settings) | ({} if transactional_id is None else {"transactional.id": transactional_id})
    settings = ProducerSettings.of(told)
    return connection.call(lambda: Producer(settings, cluster=connection.cluster))


def _without_offsets(piece: pyarrow.RecordBatch) -> tuple[pyarrow.RecordBatch, Offsets]:
    """The rows that are records, and the offsets in the other rows."""
    import pyarrow.compute as pc

    column = piece.column("offsets")
    found: Offsets = {}
    for text in pc.drop_null(column).to_pylist():
        found |= from_json(json.loads(text))
    return piece.filter(pc.is_null(column)), found


def _chain(first: pyarrow.RecordBatch, rest: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    yield first
    yield from rest


def _selected(piece: pyarrow.RecordBatch, options: SinkOptions) -> pyarrow.RecordBatch:
    """The columns that become records. Headers that nobody has would cost an object for each row."""
    names = [name for name in options.columns if name != "headers" or piece.column(name).null_count < piece.num_rows]
    names = [name for name in names if name != "partition" or piece.column(name).null_count < piece.num_rows]
    names = [name for name in names if name != "offsets"]
    if "topic" in names and piece.column("topic").null_count:
        raise InvalidOption("a row has no topic: fill the column topic, or say the option topic")
    return _as_binary(piece.select(names))


def _as_binary(piece: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    import pyarrow as pa

    for index, name in enumerate(piece.schema.names):
        if name in ("key", "value") and piece.schema.field(index).type != pa.binary():
            piece = piece.set_column(index, pa.field(name, pa.binary()), piece.column(index).cast(pa.binary()))
    return piece


def _size(piece: pyarrow.RecordBatch) -> int:
    """Bytes of keys and values, however the rows were cut into pieces."""
    import pyarrow.compute as pc

    columns = [piece.column(name) for name in ("key", "value") if name in piece.schema.names]
    return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)
