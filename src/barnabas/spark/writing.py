"""A task's rows into topics: what runs in an executor, and what the driver does when all tasks are through.

With ``exactly_once`` a task writes in a transaction and leaves it open; the driver ends those of all tasks. A batch
that comes a second time finds its markers and writes only what was not committed. A table::

    marker of the task   what the task does
    none, or older       writes records and marker, hands the transaction over
    this batch           writes nothing; the rows must be as many and as large as they were
    newer                stops: the checkpoint is older than what was written
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import WriterCommitMessage

from barnabas.client.errors import ProducerFenced
from barnabas.client.producer import Producer
from barnabas.client.producer_settings import ProducerSettings
from barnabas.client.transactions import OpenTransaction, end_transaction
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.spark.errors import BatchChanged, InvalidOption
from barnabas.spark.key_partitions import partitions_of
from barnabas.spark.link import Link, link
from barnabas.spark.markers import Content, Marker, Slot
from barnabas.spark.sink_options import AT_LEAST_ONCE, SinkOptions

if TYPE_CHECKING:
    import pyarrow

log = logging.getLogger("barnabas.spark")

ENDS_AT_ONCE_MAX: Final = 16  # transactions that the driver ends side by side


class Written(WriterCommitMessage):
    """What a task tells the driver: how much it wrote, and the transaction to end, if there is one."""

    def __init__(self, content: Content, transaction: OpenTransaction | None = None) -> None:
        self.content = content
        self.transaction = transaction


class Batch:
    """Whose rows these are: a batch of a stream if the sink shall notice it when it comes again."""

    def __init__(self, sink_id: str, task: int, batch_id: int | None) -> None:
        self.sink_id = sink_id
        self.task = task
        self.batch_id = batch_id

    @property
    def transactional_id(self) -> str:
        return f"{self.sink_id}-{self.task}"


def write(rows: Iterator[pyarrow.RecordBatch], options: SinkOptions, batch: Batch) -> Written:
    """Everything into the topics, acknowledged; in a transaction that is left open if that was asked for."""
    pieces = (piece for piece in rows if piece.num_rows)
    first = next(pieces, None)
    if first is None:
        return Written(Content())
    connection = link(ProducerSettings, options.settings)
    if options.guarantee == AT_LEAST_ONCE:
        producer = _producer(connection, options)
        try:
            return Written(_send(connection, producer, options, first, pieces))
        finally:
            connection.run(producer.close())
    return _write_in_transaction(connection, options, batch, first, pieces)


def _write_in_transaction(
    connection: Link,
    options: SinkOptions,
    batch: Batch,
    first: pyarrow.RecordBatch,
    rest: Iterator[pyarrow.RecordBatch],
) -> Written:
    producer = _producer(connection, options, batch.transactional_id)
    try:
        # This ends what an earlier attempt has left open, and waits for it: after that the marker can be trusted.
        connection.run(producer.begin_transaction())
        slot = Slot.of(batch.sink_id, batch.task)
        if batch.batch_id is not None:
            marker = connection.run(slot.read(connection.cluster))
            if marker is not None and marker.batch_id >= batch.batch_id:
                return _already(marker, options, batch, first, rest)
        content = _send(connection, producer, options, first, rest)
        if batch.batch_id is not None:
            connection.run(slot.write(producer, Marker(batch.batch_id, content)))
        return Written(content, connection.run(producer.hand_over()))
    finally:
        # What went wrong before says more than that there is nothing left to abort.
        with suppress(BarnabasError):
            connection.run(producer.close(flush=False))


def _already(
    marker: Marker, options: SinkOptions, batch: Batch, first: pyarrow.RecordBatch, rest: Iterator[pyarrow.RecordBatch]
) -> Written:
    """The task has committed this batch before. If what comes now is something else, nobody can make it right."""
    if batch.batch_id is None or marker.batch_id > batch.batch_id:
        raise BatchChanged(
            f"{batch.sink_id!r} has written batch {marker.batch_id} and is given batch {batch.batch_id} again: the "
            f"checkpoint is older than what was written. Start with a new checkpoint; what it reads is written again."
        )
    content = Content()
    for piece in _chain(first, rest):
        content = content.plus(piece.num_rows, _size(_selected(piece, options)))
    if content != marker.content:
        raise BatchChanged(
            f"task {batch.task} of batch {batch.batch_id} has written {marker.content} before the restart and would "
            f"write {content} now: the query or the number of its partitions has changed between. Start it once as it "
            f"was, so that the batch is completed, and change it then."
        )
    return Written(content)


def _producer(connection: Link, options: SinkOptions, transactional_id: str | None = None) -> Producer:
    told = dict(options.settings) | ({} if transactional_id is None else {"transactional.id": transactional_id})
    settings = ProducerSettings.of(told)
    return connection.call(lambda: Producer(settings, cluster=connection.cluster))


def _send(
    connection: Link,
    producer: Producer,
    options: SinkOptions,
    first: pyarrow.RecordBatch,
    rest: Iterator[pyarrow.RecordBatch],
) -> Content:
    """One piece is on its way while the next one comes from Spark; never two, so that rows stay in order."""
    content = Content()
    under_way: Future[int] | None = None
    for piece in _chain(first, rest):
        table = _selected(piece, options)
        content = content.plus(piece.num_rows, _size(table))
        if under_way is not None:
            under_way.result()
        under_way = connection.start(producer.send_arrow(_placed(connection, table, options), options.topic))
    if under_way is not None:
        under_way.result()
    return content


def _placed(connection: Link, table: pyarrow.RecordBatch, options: SinkOptions) -> pyarrow.RecordBatch:
    """With a partition for every key, where all rows go to one topic; the client would look at them one by one."""
    if options.topic is None or "key" not in table.schema.names or "partition" in table.schema.names:
        return table
    topic = connection.run(connection.cluster.topic(options.topic, auto_create=True))
    return table.append_column("partition", partitions_of(table.column("key"), len(topic.partitions)))


def _chain(first: pyarrow.RecordBatch, rest: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    yield first
    yield from rest


def _selected(piece: pyarrow.RecordBatch, options: SinkOptions) -> pyarrow.RecordBatch:
    """The columns that become records. Headers that nobody has would cost an object for each row."""
    names = [name for name in options.columns if name != "headers" or piece.column(name).null_count < piece.num_rows]
    names = [name for name in names if name != "partition" or piece.column(name).null_count < piece.num_rows]
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


# --- on the driver ----------------------------------------------------------------------------------------------------


def end(messages: Sequence[WriterCommitMessage | None], options: SinkOptions, *, commit: bool) -> None:
    """End the transactions of all tasks. Who is told twice is told the same, so a batch may come again."""
    open_ones = [each.transaction for each in messages if isinstance(each, Written) and each.transaction is not None]
    if not open_ones:
        return
    connection = link(ProducerSettings, options.settings)
    failures = connection.run(_end_all(connection, open_ones, commit=commit))
    if failures and commit:
        raise failures[0]
    for failure in failures:
        log.warning("a transaction was not aborted and will be when its time is up: %s", failure)


async def _end_all(connection: Link, open_ones: list[OpenTransaction], *, commit: bool) -> list[BarnabasError]:
    room = asyncio.Semaphore(ENDS_AT_ONCE_MAX)

    async def end_one(transaction: OpenTransaction) -> BarnabasError | None:
        async with room:
            try:
                await end_transaction(connection.cluster, OpenTransaction(*transaction), commit=commit)
            except ProducerFenced as error:
                return _fenced(transaction, error) if commit else None  # whoever has the id now has aborted it
            except BarnabasError as error:
                return error
        return None

    outcomes = await asyncio.gather(*map(end_one, open_ones))
    return [each for each in outcomes if each is not None]


def _fenced(transaction: OpenTransaction, error: ProducerFenced) -> BarnabasError:
    return ApiError(
        error.error,
        f"the transaction {transaction.transactional_id!r} was ended before all tasks were through: it took "
        f"longer than kafka.transaction.timeout.ms, or the same query runs twice. Start it again: nothing is lost.",
    )
