"""Transactions of the real clients: commit, abort, fencing, time-outs, offsets; and readers who see only what counts.

But for the last ones, which move the broker's clock, they run against any broker that `BARNABAS_TEST_BOOTSTRAP` names.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from _pytest.mark import ParameterSet
from transactional_clients import READERS, WRITERS, Fenced, Session

CreateTopic = Callable[..., str]
LAST = b"last"

# kafka-python reads its schemas in a way that Python 3.11 frowns upon; that is not ours to repair.
pytestmark = pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning")


def named(*names: str) -> ParameterSet:
    return pytest.param(*names, marks=[pytest.mark.java] if "java" in names else [], id="-".join(names))


EACH_WRITER = [named(name) for name in WRITERS]
EACH_PAIR = [named(writer, reader) for writer in WRITERS for reader in READERS]


@contextmanager
def session(name: str, bootstrap: str, transactional_id: str = "", **more: int) -> Iterator[Session]:
    producer = WRITERS[name](bootstrap, transactional_id or f"id-{uuid.uuid4().hex[:8]}", **more)
    try:
        yield producer
    finally:
        producer.close()


def transact(producer: Session, topic: str, *values: bytes, is_commit: bool = True, partition: int = 0) -> None:
    producer.begin()
    for value in values:
        producer.send(topic, partition, value)
    if is_commit:
        producer.commit()
    else:
        producer.abort()


@pytest.mark.parametrize(("writer", "reader"), EACH_PAIR)
def test_readers_see_committed_transactions_only_and_in_order(
    broker_address: str, create_topic: CreateTopic, writer: str, reader: str
) -> None:
    topic = create_topic()
    with session(writer, broker_address) as one, session("confluent", broker_address) as other:
        one.init()
        other.init()
        one.begin()
        other.begin()
        one.send(topic, 0, b"one-1")
        other.send(topic, 0, b"other-1")
        one.send(topic, 0, b"one-2")
        other.abort()
        transact(other, topic, b"other-2")
        one.commit()
        transact(one, topic, b"one-3", is_commit=False)
        transact(one, topic, b"one-4")
        transact(one, topic, LAST)
    assert READERS[reader](broker_address, topic, 0, LAST) == [b"one-1", b"one-2", b"other-2", b"one-4", LAST]


@pytest.mark.parametrize("writer", EACH_WRITER)
def test_a_transaction_spans_partitions(broker_address: str, create_topic: CreateTopic, writer: str) -> None:
    topic = create_topic(partitions=3)
    with session(writer, broker_address) as producer:
        producer.init()
        for number, is_commit in enumerate((False, True, True)):
            producer.begin()
            for partition in range(3):
                producer.send(topic, partition, b"%d" % number)
            producer.commit() if is_commit else producer.abort()
        for partition in range(3):
            assert READERS["confluent"](broker_address, topic, partition, b"2") == [b"1", b"2"]


@pytest.mark.parametrize("writer", EACH_WRITER)
def test_a_zombie_is_fenced_and_what_it_left_open_is_aborted(
    broker_address: str, create_topic: CreateTopic, writer: str
) -> None:
    topic, transactional_id = create_topic(), f"id-{uuid.uuid4().hex[:8]}"
    with session(writer, broker_address, transactional_id) as zombie:
        zombie.init()
        transact(zombie, topic, b"before")
        zombie.begin()
        zombie.send(topic, 0, b"left open")
        with session(writer, broker_address, transactional_id) as heir:
            heir.init()
            transact(heir, topic, b"heir")
            with pytest.raises(Fenced):
                finish(zombie, topic)
            transact(heir, topic, LAST)
    assert READERS["confluent"](broker_address, topic, 0, LAST) == [b"before", b"heir", LAST]


def finish(zombie: Session, topic: str) -> None:
    """Some clients hear of it when they send, some when they commit."""
    zombie.send(topic, 0, b"zombie")
    zombie.commit()


@pytest.mark.parametrize("writer", EACH_WRITER)
def test_offsets_count_when_their_transaction_is_committed(
    broker_address: str, create_topic: CreateTopic, writer: str
) -> None:
    topic, group = create_topic(), f"group-{uuid.uuid4().hex[:8]}"
    with session(writer, broker_address) as producer:
        producer.init()
        for offset, is_commit in ((3, True), (5, False), (7, True), (9, False)):
            producer.begin()
            producer.send(topic, 0, b"%d" % offset)
            producer.send_offset(topic, 0, offset, group)
            producer.commit() if is_commit else producer.abort()
            assert committed_offset(broker_address, topic, group) == (offset if is_commit else offset - 2)


def committed_offset(bootstrap: str, topic: str, group: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed", "log_level": 0}
    consumer = Consumer(settings)
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=20)
        return found.offset
    finally:
        consumer.close()


@pytest.mark.parametrize("reader", [named(name) for name in READERS])
def test_a_reader_waits_for_an_open_transaction_and_goes_on(
    broker_address: str, create_topic: CreateTopic, reader: str
) -> None:
    topic = create_topic()
    found: list[bytes] = []
    with session("confluent", broker_address) as slow, session("confluent", broker_address) as fast:
        slow.init()
        fast.init()
        slow.begin()
        slow.send(topic, 0, b"slow")
        transact(fast, topic, b"fast")
        thread = threading.Thread(target=lambda: found.extend(READERS[reader](broker_address, topic, 0, b"fast")))
        thread.start()
        thread.join(1.0)
        assert thread.is_alive(), "the reader has passed an open transaction"
        slow.commit()
        thread.join(30.0)
    assert found == [b"slow", b"fast"]


@pytest.mark.parametrize("writer", EACH_WRITER)
def test_a_transaction_whose_time_is_up_is_aborted(writer: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

    from barnabas.testing import Broker

    with Broker() as broker:
        bootstrap = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.create_topics([NewTopic("t", 1)])["t"].result(20)
        with session(writer, bootstrap, timeout_ms=10_000) as slow, session("confluent", bootstrap) as other:
            slow.init()
            other.init()
            slow.begin()
            slow.send("t", 0, b"too slow")
            transact(other, "t", LAST)
            broker.clock.advance("21s")
            assert READERS["confluent"](bootstrap, "t", 0, LAST) == [LAST]
            with pytest.raises(Exception):  # noqa: B017, PT011  # each client has its own word for this
                slow.commit()
