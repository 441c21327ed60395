"""How far groups are behind, as the metrics tell it: records, seconds, members; exact, and bounded."""

from __future__ import annotations

import re
import socket
import time
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from barnabas.broker.lag import group_lag
from barnabas.testing import Broker

HOUR_MS = 3_600_000
SAMPLE = re.compile(r"(\w+)\{(.*)\} ([0-9.]+)")


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def broker(port: int) -> Iterator[Broker]:
    with Broker(settings={"barnabas.http.port": str(port)}) as running:
        yield running


@pytest.fixture
def settings(broker: Broker) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2}


def group_samples(port: int, group: str) -> dict[tuple[str, ...], float]:
    """The samples of one group, by name, topic and partition."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = {}
    for name, labels, value in SAMPLE.findall(text):
        told = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if told.pop("consumergroup", None) == group:
            found[name.removeprefix("kafka_consumergroup_"), *told.values()] = float(value)
    return found


def new_topic(settings: dict[str, object], name: str, partitions: int = 1) -> None:
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1)])[name].result(20)


def commit(settings: dict[str, object], group: str, topic: str, *offsets: int) -> None:
    consumer = Consumer({**settings, "group.id": group})
    consumer.commit(
        offsets=[TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)], asynchronous=False
    )
    consumer.close()


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_lag_is_told_in_records_and_in_seconds(settings: dict[str, object], port: int, name: str, codec: str) -> None:
    new_topic(settings, name, partitions=2)
    producer = Producer({**settings, "linger.ms": 100, "compression.type": codec})
    now_ms = time.time_ns() // 1_000_000
    for hour in range(10):
        for index in (0, 1):
            producer.produce(name, b"v", partition=index, timestamp=now_ms - (9 - hour) * HOUR_MS - HOUR_MS)
    assert producer.flush(20) == 0
    commit(settings, name, name, 7, 10)
    found = group_samples(port, name)
    assert found["current_offset", name, "0"] == 7
    assert found["current_offset_sum", name] == 17
    assert (found["lag", name, "0"], found["lag", name, "1"], found["lag_sum", name]) == (3, 0, 3)
    assert (found["lag_seconds", name, "0"], found["lag_seconds", name, "1"]) == (7200, 0)
    assert 10_800 <= found["oldest_unread_seconds", name, "0"] < 10_900
    assert found["oldest_unread_seconds", name, "1"] == 0
    assert found["members",] == 0
    commit(settings, name, name, 8, 10)
    assert group_samples(port, name)["lag_seconds", name, "0"] == 3600


def test_members_are_counted(settings: dict[str, object], port: int, name: str) -> None:
    new_topic(settings, name)
    consumer = Consumer({**settings, "group.id": name, "auto.offset.reset": "earliest"})
    consumer.subscribe([name])
    producer = Producer(settings)
    producer.produce(name, b"v")
    assert producer.flush(20) == 0
    assert consumer.poll(20) is not None
    assert group_samples(port, name)["members",] == 1
    consumer.close()


def test_the_end_of_a_transaction_is_no_record_that_waits(settings: dict[str, object], port: int, name: str) -> None:
    new_topic(settings, name)
    producer = Producer({**settings, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(name, b"v", timestamp=1)
    producer.commit_transaction(20)
    commit(settings, name, name, 1)
    found = group_samples(port, name)
    assert (found["lag", name, "0"], found["lag_seconds", name, "0"]) == (1, 0)
    assert found["oldest_unread_seconds", name, "0"] == 0


def test_of_too_many_only_a_number_is_told(
    broker: Broker, settings: dict[str, object], port: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_topic(settings, name, partitions=3)
    commit(settings, name, name, 0, 0, 0)
    rows = list(broker.node.services.groups.lags.rows())
    monkeypatch.setattr(group_lag, "ROWS_MAX", len(rows) - 2)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert "\nkafka_consumergroup_partitions_left_out 2\n" in answer.read().decode()


def test_few_times_are_looked_up_at_once_and_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_lag, "LOOK_UPS_MAX", 2)
    with Broker() as broker:  # one of its own: look-ups are counted
        settings: dict[str, object] = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 2}
        new_topic(settings, "t", partitions=3)
        producer = Producer(settings)
        for index in range(3):
            producer.produce("t", b"v", partition=index)
        assert producer.flush(20) == 0
        commit(settings, "g", "t", 0, 0, 0)

        def untold() -> int:
            return sum(1 for row in broker.node.services.groups.lags.rows() if row.behind_ms is None)

        assert [untold(), untold(), untold()] == [1, 0, 0]
