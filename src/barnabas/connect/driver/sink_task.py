"""One task of a sink in one batch: bytes to records, through transforms, into the sink; dead letters for the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.producer import Producer
from barnabas.client.settings.client import Settings
from barnabas.client.settings.producer import ProducerSettings
from barnabas.connect.definitions import SinkConfig
from barnabas.connect.driver.prepared import Prepared, Spec
from barnabas.connect.driver.rows import raws
from barnabas.connect.plugins import Sink
from barnabas.connect.records import Batch, Record
from barnabas.connect.tolerance import DeadLetter, ErrorHandler, Raw, put_by_halves
from barnabas.model import errors
from barnabas.model.errors import ApiError

if TYPE_CHECKING:
    import pyarrow as pa

Pair = tuple[Raw, Record]


def write(spec: Spec, batch: Batch, rows: Iterator[pa.RecordBatch]) -> Any:
    """Write a task's rows; return what the sink's ``flush`` returns, or None if the batch was written before."""
    prepared = Prepared(spec)
    sink: Sink[Any] = prepared.instance()
    handler = prepared.errors(batch.task)
    try:
        sink.open(batch)
        last = sink.last(batch)
        if last is not None and last >= batch.id:
            for _ in rows:  # Spark wants its rows to be taken
                pass
            return None
        pairs = _pairs(prepared, rows, handler)
        while piece := list(islice(pairs, sink.put_records_max)):
            _put(prepared, sink, piece, handler)
        _send_dead_letters(prepared, handler.dead_letters)
        return sink.flush(batch)
    finally:
        sink.close()


def _pairs(prepared: Prepared, rows: Iterator[pa.RecordBatch], handler: ErrorHandler) -> Iterator[Pair]:
    for batch in rows:
        for raw in raws(batch):
            record = prepared.incoming(raw, handler)
            if record is not None:
                yield raw, record


def _put(prepared: Prepared, sink: Sink[Any], pairs: Sequence[Pair], handler: ErrorHandler) -> None:
    if prepared.common.errors_tolerance == "none":
        sink.put([record for _, record in pairs])
        return
    put_by_halves(
        lambda some: sink.put([record for _, record in some]),
        pairs,
        lambda pair, error: handler.failed(prepared.put_failed(error), pair[0]),
    )


def _send_dead_letters(prepared: Prepared, letters: Sequence[DeadLetter]) -> None:
    """Send dead letters before the batch is flushed: a crash in between repeats them, and loses none."""
    if not letters:
        return
    common = prepared.common
    assert isinstance(common, SinkConfig)
    topic, client = common.errors_deadletterqueue_topic_name, prepared.spec.client
    _ensure_topic(client, topic, common.errors_deadletterqueue_topic_replication_factor)
    with Producer(ProducerSettings.of(dict(client))) as producer:
        for letter in letters:
            producer.send_soon(topic, letter.value, key=letter.key, headers=letter.headers)
        producer.flush()


def _ensure_topic(client: Mapping[str, str], topic: str, replicas: int) -> None:
    with Admin(Settings.of(dict(client))) as admin:
        try:
            admin.create_topic(NewTopic(topic, 1, replicas))
        except ApiError as error:
            if error.error is not errors.TOPIC_ALREADY_EXISTS:
                raise
