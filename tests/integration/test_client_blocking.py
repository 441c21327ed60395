"""The producer without async: many records cross over at a time, in order, and every failure is heard of."""

from __future__ import annotations

import threading
from itertools import islice
from typing import Any

import pytest

from barnabas import ConsumerSettings, NewTopic, ProducerSettings, Settings, TopicPartition, blocking
from barnabas.client.errors import RecordTooLarge, Unencodable
from barnabas.client.produce.batch import RecordMetadata
from barnabas.client.serdes import STR
from barnabas.testing import Broker

WRITERS = 4
RECORDS = 8_000


def make(broker: Broker, name: str, partitions: int = 1) -> tuple[str, ...]:
    servers = (broker.bootstrap_servers,)
    with blocking.Admin(Settings(bootstrap_servers=servers)) as admin:
        admin.create_topic(NewTopic(name, partition_count=partitions))
    return servers


def values(servers: tuple[str, ...], name: str) -> list[bytes | None]:
    with blocking.Consumer(ConsumerSettings(bootstrap_servers=servers)) as consumer:
        consumer.assign([TopicPartition(name, 0)], until_end=True)
        return [record.value for record in consumer]


def test_what_is_sent_soon_arrives_in_order(shared_broker: Broker, name: str) -> None:
    servers = make(shared_broker, name)
    with blocking.Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
        promises = [producer.send_soon(name, b"%d" % number, headers={"n": b"1"}) for number in range(30_000)]
        assert promises[17].result() == RecordMetadata(name, 0, 17, promises[17].result().timestamp_ms)
        producer.flush()
        assert all(promise.is_done for promise in promises)
        assert producer.buffered_bytes == 0
        late = producer.send_soon(name, b"last")
    assert late.is_done
    assert values(servers, name) == [*(b"%d" % number for number in range(30_000)), b"last"]


def test_what_could_not_be_sent_is_heard_of_once(shared_broker: Broker, name: str) -> None:
    servers = make(shared_broker, name)
    with blocking.Producer(ProducerSettings(bootstrap_servers=servers), value=STR) as producer:
        large = producer.send_soon(name, "x" * 2_000_000)
        wrong = producer.send_soon(name, 7)  # type: ignore[arg-type]
        fine = producer.send_soon(name, "fine")
        with pytest.raises(RecordTooLarge):
            producer.flush()
        producer.flush()
        with pytest.raises(RecordTooLarge):
            large.result()
        with pytest.raises(Unencodable):
            wrong.result()
        assert fine.result(timeout_ms=10_000).offset == 0


def test_a_transaction_ends_after_all_that_was_sent_in_it(shared_broker: Broker, name: str) -> None:
    servers = make(shared_broker, name)
    settings = ProducerSettings(bootstrap_servers=servers, transactional_id=name)
    with blocking.Producer(settings) as producer:
        with producer.transaction():
            for number in range(1_000):
                producer.send_soon(name, b"%d" % number)

        def fail() -> None:
            with producer.transaction():
                producer.send_soon(name, b"dropped")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
    committed = ConsumerSettings(bootstrap_servers=servers, isolation_level="read_committed")
    with blocking.Consumer(committed) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        # Kafka acknowledges a commit before its marker is in the log: the end of what may be read comes a little later.
        assert [record.value for record in islice(consumer, 1_000)] == [b"%d" % number for number in range(1_000)]


def test_many_at_once_say_where_each_went(shared_broker: Broker, name: str) -> None:
    servers = make(shared_broker, name, 3)
    pairs = [(b"k%d" % number if number % 3 else None, b"%d" % number) for number in range(5_000)]
    with blocking.Producer(ProducerSettings(bootstrap_servers=servers)) as producer:
        sent = producer.send_many(name, pairs)
    with blocking.Consumer(ConsumerSettings(bootstrap_servers=servers)) as consumer:
        consumer.assign([TopicPartition(name, index) for index in range(3)], until_end=True)
        found = {(record.partition, record.offset): (record.key, record.value) for record in consumer}
    assert [found[where.partition, where.offset] for where in sent] == pairs


def test_several_threads_send_at_once_and_each_promise_is_kept(shared_broker: Broker, name: str) -> None:
    """Small batches, so that they fill, leave and are opened while others write into them."""
    servers = (shared_broker.bootstrap_servers,)
    with blocking.Admin(Settings(bootstrap_servers=servers)) as admin:
        admin.create_topic(NewTopic(name, partition_count=2))
    settings = ProducerSettings(bootstrap_servers=servers, batch_size=4096, linger_ms=1)
    promises: dict[bytes, Any] = {}
    with blocking.Producer(settings) as producer:
        producer.send(name, b"first")

        def write(writer: int) -> None:
            for number in range(RECORDS):
                value = b"%d-%d" % (writer, number)
                if number % 50 == 7:
                    promises[value] = producer.send_soon(name, value, headers={"writer": b"%d" % writer})
                elif number % 1000 == 13:
                    producer.send_many(name, [(None, value)])
                else:
                    promises[value] = producer.send_soon(name, value)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush()
        places = {value: promise.result() for value, promise in list(promises.items())[::97]}
        assert all(promise.is_done for promise in promises.values())
    table = blocking.Topic(name, bootstrap_servers=servers[0]).to_arrow()
    rows = zip(*(table[column].to_pylist() for column in ("value", "partition", "offset")), strict=True)
    found = {value: (partition, offset) for value, partition, offset in rows}
    assert len(table) == 1 + WRITERS * RECORDS == len(found)
    assert {value: (place.partition, place.offset) for value, place in places.items()} == {
        value: found[value] for value in places
    }
    for writer in range(WRITERS):
        for partition in range(2):
            own = [(found[b"%d-%d" % (writer, number)], number) for number in range(RECORDS)]
            here = [(offset, number) for (where, offset), number in own if where == partition]
            assert here == sorted(here)
