"""Where records end up by each partitioner, in both faces, one by one and as rows; and how often a batch is retried."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from talk import Talk

from barnabas import Producer, ProducerSettings, blocking
from barnabas.client.cluster.connections import Connection
from barnabas.client.errors import CannotPartition
from barnabas.client.partitions.partitioner import RoundRobin, Sticky
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.testing import Broker
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

ROUND_ROBIN = "org.apache.kafka.clients.producer.RoundRobinPartitioner"


def settings(broker: Broker, **more: Any) -> ProducerSettings:
    return ProducerSettings.of({"bootstrap.servers": broker.bootstrap_servers, **more})


def by_length(topic: str, key: bytes | None, value: bytes | None, count: int) -> int | None:
    return None if value is None else len(value) % count


def test_round_robin_takes_every_partition_in_turn(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name, partitions=3)
    with blocking.Producer(settings(shared_broker, **{"partitioner.class": ROUND_ROBIN})) as producer:
        promises = [producer.send_soon(name, b"v", key=b"k" if number % 2 else None) for number in range(9)]
        producer.flush()
        assert [promise.result().partition for promise in promises] == [0, 1, 2] * 3
        assert [where.partition for where in producer.send_many(name, [(b"k", b"v")] * 4)] == [0, 1, 2, 0]

    async def ours() -> list[int]:
        async with Producer(settings(shared_broker), partitioner=RoundRobin()) as producer:
            return [(await producer.send(name, b"v")).partition for _ in range(4)]

    assert asyncio.run(ours()) == [0, 1, 2, 0]


def test_a_record_that_waits_for_room_takes_one_turn(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name, partitions=3)
    small = settings(shared_broker, **{"buffer.memory": "2000", "batch.size": "500", "partitioner": "round_robin"})
    with blocking.Producer(small) as producer:
        promises = [producer.send_soon(name, b"x" * 400) for _ in range(60)]
        producer.flush()
        assert Counter(promise.result().partition for promise in promises) == {0: 20, 1: 20, 2: 20}


def test_a_function_sees_keyless_records_and_their_values(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name, partitions=3)
    with blocking.Producer(settings(shared_broker), partitioner=by_length) as producer:
        promises = [producer.send_soon(name, b"x" * size) for size in range(6)]
        assert [promise.result().partition for promise in promises] == [0, 1, 2] * 2
        rows = pa.table({"value": [b"", b"1", b"22", b"333", b"4444"]})
        assert producer.send_arrow(rows, name) == 5
    table = blocking.Topic(name, bootstrap_servers=shared_broker.bootstrap_servers).to_arrow()
    found = zip(table["value"].to_pylist(), table["partition"].to_pylist(), strict=True)
    assert all(len(value) % 3 == partition for value, partition in found)


def test_a_function_that_fails_fails_its_record_alone(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name, partitions=3)

    def wrong(topic: str, key: bytes | None, value: bytes | None, count: int) -> int:
        assert value is not None
        return 1 if value == b"fine" else int(value)

    with blocking.Producer(settings(shared_broker), partitioner=wrong) as producer:
        promises = [producer.send_soon(name, value) for value in (b"fine", b"nonsense", b"7", b"fine")]
        for promise in promises[1:3]:
            with pytest.raises(CannotPartition):
                promise.result()
        assert [promises[number].result().partition for number in (0, 3)] == [1, 1]
        with pytest.raises(CannotPartition):
            producer.flush()


def test_keys_that_are_ignored_stay_with_their_records(shared_broker: Broker, talk: Talk, name: str) -> None:
    talk.create(name, partitions=3)
    ignoring = settings(shared_broker, **{"partitioner.ignore.keys": "true", "linger.ms": "100"})
    with blocking.Producer(ignoring) as producer:
        promises = [producer.send_soon(name, b"v", key=b"%d" % number) for number in range(30)]
        producer.flush()
        assert len({promise.result().partition for promise in promises}) == 1
    table = blocking.Topic(name, bootstrap_servers=shared_broker.bootstrap_servers).to_arrow()
    assert table["key"].to_pylist() == [b"%d" % number for number in range(30)]


@pytest.mark.parametrize("rule", ["consistent", "consistent_random", "murmur2", "murmur2_random"])
def test_librdkafkas_words_mean_what_they_mean_there(shared_broker: Broker, talk: Talk, name: str, rule: str) -> None:
    talk.create(name, partitions=7)
    keys = [b"key-%d" % number for number in range(100)]
    if not rule.endswith("random"):  # which they mean for records without a key
        keys += [b""]
    theirs: dict[bytes, int] = {}
    foreign = confluent_kafka.Producer({"bootstrap.servers": shared_broker.bootstrap_servers, "partitioner": rule})
    for key in keys:
        foreign.produce(
            name, b"v", key=key, on_delivery=lambda _, sent, key=key: theirs.update({key: sent.partition()})
        )
    foreign.flush()
    with blocking.Producer(settings(shared_broker, partitioner=rule)) as producer:
        ours = producer.send_many(name, [(key, b"v") for key in keys])
    assert theirs == {key: where.partition for key, where in zip(keys, ours, strict=True)}


@pytest.mark.parametrize("is_adaptive", [True, False])
def test_partitions_with_little_waiting_are_preferred_unless_nobody_wants_that(
    shared_broker: Broker, talk: Talk, name: str, monkeypatch: pytest.MonkeyPatch, is_adaptive: bool
) -> None:
    talk.create(name, partitions=3)
    seen: list[Any] = []
    choose = Sticky.choose

    def watched(self: Sticky, *arguments: Any, loads: Any = None, **more: Any) -> int:
        seen.append(loads)
        return choose(self, *arguments, loads=loads, **more)

    monkeypatch.setattr(Sticky, "choose", watched)
    told = {"partitioner.adaptive.partitioning.enable": str(is_adaptive).lower(), "linger.ms": "60000"}

    async def work() -> None:
        async with Producer(settings(shared_broker, **told)) as producer:
            await producer.send_soon(name, b"waits", partition=2)
            await producer.send_soon(name, b"goes elsewhere, probably")

    asyncio.run(work())
    assert seen == [[0, 0, 1] if is_adaptive else None]


@pytest.mark.parametrize("retries", [0, 2])
def test_a_batch_is_sent_again_as_often_as_retries_says(
    shared_broker: Broker, talk: Talk, name: str, monkeypatch: pytest.MonkeyPatch, retries: int
) -> None:
    talk.create(name)
    sent: list[ProduceRequest] = []
    call = Connection.call

    async def refusing(self: Connection, message: Any, response: type[Any], **options: Any) -> Any:
        if not isinstance(message, ProduceRequest):
            return await call(self, message, response, **options)
        sent.append(message)
        (topic,) = message.topic_data
        row = ProduceResponse.PartitionProduceResponse(index=0, error_code=errors.NOT_ENOUGH_REPLICAS.code)
        named = ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        named.partition_responses = [row]
        return ProduceResponse(responses=[named])

    monkeypatch.setattr(Connection, "call", refusing)
    told = settings(shared_broker, **{"retries": str(retries), "retry.backoff.ms": "1", "retry.backoff.max.ms": "1"})
    assert told.is_idempotent == (retries > 0)
    with blocking.Producer(told) as producer, pytest.raises(ApiError) as refused:
        producer.send(name, b"v")
    assert refused.value.error is errors.NOT_ENOUGH_REPLICAS
    assert len(sent) == 1 + retries
