"""A connector run in this process, without Spark: a dry run of a few records, and the replay of dead letters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from barnabas.client.blocking.admin import Admin
from barnabas.client.blocking.consumer import Consumer
from barnabas.client.offsets import Start
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.connect.converters import text_of
from barnabas.connect.definitions import SinkConfig
from barnabas.connect.driver.prepared import Prepared
from barnabas.connect.errors import ConfigError, ConnectError
from barnabas.connect.plugins import PollSource, Sink, Source
from barnabas.connect.records import Batch, Cursor, Record
from barnabas.connect.tolerance import HEADER_PREFIX, Raw, describe, put_by_halves
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition

POLL_MS: Final = 2000
SHOWN_MAX: Final = 400
REPLAY_GROUP: Final = "connect-{}-replay"  # offsets of the dead letters that were replayed


class Step(NamedTuple):
    """What a record looks like after a step."""

    name: str
    shown: str
    is_first: bool = False


class Trial:
    """A dry run. It commits nothing, and sources leave nothing behind where ``sample`` says how."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self.failed = 0

    def run(self, count: int) -> Iterator[Step]:
        """Yield the steps of at most ``count`` records."""
        if self._prepared.is_sink:
            for raw in islice(self._raws(count), count):
                yield from self._incoming(raw)
            return
        instance: Any = self._prepared.instance()
        try:
            for record in islice(_records(instance, count), count):
                yield from self._outgoing(record)
        finally:
            instance.close()

    def _outgoing(self, record: Record) -> Iterator[Step]:
        prepared, errors = self._prepared, self._prepared.errors(0)
        yield Step("read", _shown(record), is_first=True)
        steps: list[Step] = []
        try:
            made = prepared.chain.transform(record, errors, None, lambda name, each: steps.append(_step(name, each)))
            yield from steps
            if made is not None:
                outgoing = prepared.chain.to_bytes(made, errors)
                if outgoing is not None:
                    yield Step("write", f"{outgoing.topic}: {_cut(repr(outgoing.key))} {_cut(repr(outgoing.value))}")
        except ConnectError as error:
            yield from steps
            yield self._failure(error)

    def _incoming(self, raw: Raw) -> Iterator[Step]:
        prepared, errors = self._prepared, self._prepared.errors(0)
        place = f"{raw.topic}-{raw.partition}@{raw.offset}"
        yield Step("read", f"{place}: {_cut(repr(raw.key))} {_cut(repr(raw.value))}", is_first=True)
        steps: list[Step] = []
        try:
            record = prepared.chain.from_bytes(raw, errors)
            if record is not None:
                yield Step("converters", _shown(record))
                prepared.chain.transform(record, errors, raw, lambda name, each: steps.append(_step(name, each)))
                yield from steps
            if errors.skipped:
                self.failed += 1
                yield Step("dead letter", f"{len(errors.dead_letters)} to the dead-letter topic")
        except ConnectError as error:
            yield from steps
            yield self._failure(error)

    def _failure(self, error: ConnectError) -> Step:
        self.failed += 1
        return Step("failed", self._prepared.redact(_cut(describe(error))))

    def _raws(self, count: int) -> Iterator[Raw]:
        """Yield the newest records of the sink's topics."""
        common = self._prepared.common
        assert isinstance(common, SinkConfig)
        if not common.topics:
            raise ConfigError("a dry run of a sink needs topics; topics.regex is not supported")
        with Consumer(ConsumerSettings.of(dict(self._prepared.spec.client))) as consumer:
            places = _partitions(self._prepared, common.topics)
            consumer.assign(dict.fromkeys(places, Start.before_last(count)), until_end=True)
            while not consumer.is_at_end:
                yield from _as_raws(consumer.poll(timeout_ms=POLL_MS))


def _partitions(prepared: Prepared, topics: Sequence[str]) -> list[TopicPartition]:
    """Return all partitions of topics; raise if one of them is not there."""
    with Admin(Settings.of(dict(prepared.spec.client))) as admin:
        described = admin.describe_topics(topics)
    places: list[TopicPartition] = []
    for topic, found in described.items():
        if isinstance(found, ApiError):
            raise found
        places += [TopicPartition(topic, part.partition) for part in found.partitions]
    return places


def _as_raws(records: Any) -> Iterator[Raw]:
    for each in records:
        yield Raw(each.topic, each.partition, each.offset, each.timestamp_ms, each.key, each.value, each.headers)


def _records(instance: Any, count: int) -> Iterator[Record]:
    if isinstance(instance, Source):
        yield from instance.sample(count)
    elif isinstance(instance, PollSource):
        for each in instance.poll(None):
            if not isinstance(each, Cursor):
                yield each


def _step(name: str, record: Record | None) -> Step:
    return Step(name.rpartition(".")[2], "dropped" if record is None else _shown(record))


def _shown(record: Record) -> str:
    key = "" if record.key is None else f"key {_cut(text_of(record.key))} "
    return f"{record.topic}: {key}value {'null' if record.value is None else _cut(text_of(record.value))}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


class Replayed(NamedTuple):
    """What a replay has done."""

    read: int
    written: int
    failed: int


def replay_dead_letters(prepared: Prepared, *, from_beginning: bool) -> Replayed:
    """Send the dead letters of a sink through it again, from where the last replay ended."""
    common = prepared.common
    if not isinstance(common, SinkConfig) or not common.errors_deadletterqueue_topic_name:
        raise ConfigError(f"{prepared.spec.name} is not a sink with errors.deadletterqueue.topic.name")
    topic, group = common.errors_deadletterqueue_topic_name, REPLAY_GROUP.format(prepared.spec.name)
    told = {**prepared.spec.client, "group.id": group, "enable.auto.commit": "false"}
    with Consumer(ConsumerSettings.of(told)) as consumer:
        places = _partitions(prepared, [topic])
        stored = {} if from_beginning else consumer.committed(places)
        consumer.assign(places, until_end=True)
        for place, entry in stored.items():
            if entry is not None:
                consumer.seek(place, entry.offset)
        raws: list[Raw] = []
        while not consumer.is_at_end:
            raws += [original(raw) for raw in _as_raws(consumer.poll(timeout_ms=POLL_MS))]
        outcome = _write_again(prepared, raws)
        if not outcome.failed:
            consumer.commit({place: consumer.position(place) for place in places})
        return outcome


def original(raw: Raw) -> Raw:
    """Return a dead letter as the record that it was, as far as its headers say."""
    context = {key.removeprefix(HEADER_PREFIX): value for key, value in raw.headers if key.startswith(HEADER_PREFIX)}
    kept = tuple(pair for pair in raw.headers if not pair[0].startswith(HEADER_PREFIX))

    def said(name: str, default: str) -> str:
        value = context.get(name)
        return default if value is None else value.decode(errors="replace")

    return raw._replace(
        topic=said("topic", raw.topic),
        partition=int(said("partition", str(raw.partition))),
        offset=int(said("offset", str(raw.offset))),
        headers=kept,
    )


def _write_again(prepared: Prepared, raws: list[Raw]) -> Replayed:
    errors = prepared.errors(0)
    batch = Batch(f"replay-{prepared.spec.name}-{time.time_ns()}", 0, 0)
    sink: Sink[Any] = prepared.instance()
    failed = 0

    def put_failed(pair: tuple[Raw, Record], error: BaseException) -> None:
        nonlocal failed
        failed += 1

    try:
        sink.open(batch)
        pairs = []
        for raw in raws:
            try:
                record = prepared.incoming(raw, errors)
            except ConnectError:
                failed += 1
                continue
            if record is not None:
                pairs.append((raw, record))
        put_by_halves(lambda some: sink.put([record for _, record in some]), pairs, put_failed)
        sink.commit([flushed for flushed in [sink.flush(batch)] if flushed is not None], batch)
    finally:
        sink.close()
    failed += errors.skipped
    return Replayed(len(raws), len(raws) - failed, failed)
