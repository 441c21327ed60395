"""Barnabas starts on a data directory that Apache Kafka wrote, stopped or killed, and serves what Kafka served."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kafka_data import SECONDS_MAX, KafkaData, Seen, look

from barnabas.testing.broker import BrokerProcess

pytestmark = pytest.mark.java

SETTINGS = {"node.id": "1", "log.cleaner.backoff.ms": "200"}


@pytest.fixture(scope="module", params=[False, True], ids=["stopped", "killed"])
def data(request: pytest.FixtureRequest) -> Iterator[KafkaData]:
    data = KafkaData(is_killed=request.param)
    yield data
    data.remove()


@pytest.fixture
def broker(data: KafkaData, tmp_path: Path) -> Iterator[BrokerProcess]:
    shutil.copytree(data.directory, tmp_path / "data")
    with BrokerProcess(tmp_path / "data", settings=SETTINGS) as running:
        yield running


def last_values(seen: Seen, topic: str) -> dict[bytes, bytes]:
    values = {key: value for _, key, value, _, _ in seen.committed[topic, 0]}
    return {key: value for key, value in values.items() if value is not None}


def test_clients_see_what_they_saw_of_kafka(data: KafkaData, broker: BrokerProcess) -> None:
    before, after = data.seen, look(broker.bootstrap_servers)
    assert after.topics == before.topics
    assert after.configs == before.configs
    assert after.groups == before.groups
    assert after.users == before.users
    assert {key: end for key, (_, end) in after.offsets.items()} == {
        key: end for key, (_, end) in before.offsets.items()
    }
    for key in before.committed:
        if key[0] in ("compacted", "both"):
            continue  # Kafka's cleaner went on after the clients had looked
        assert after.offsets[key] == before.offsets[key]
        assert after.committed[key] == before.committed[key]
        assert after.uncommitted[key] == before.uncommitted[key]
    for topic in ("compacted", "both"):
        assert last_values(after, topic) == last_values(before, topic)
        assert set(after.committed[topic, 0]) <= set(before.committed[topic, 0])


def test_everything_goes_on_from_there(broker: BrokerProcess) -> None:
    bootstrap = broker.bootstrap_servers
    # The transaction that nobody ended is aborted when its producer comes back.
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "left-open", "log_level": 0})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce("transactional", b"decided", b"u")
    producer.commit_transaction(SECONDS_MAX)
    for protocol, group in (("classic", "classic"), ("consumer", "modern")):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol})
        consumer.subscribe(["plain"])
        taken = 0
        deadline = time.monotonic() + SECONDS_MAX
        while taken < 1000 - 153 and time.monotonic() < deadline:
            taken += len(consumer.consume(100, timeout=1.0))
        assert taken == 1000 - 153, "each goes on where it had committed"
        consumer.commit(asynchronous=False)
        consumer.close()
    seen = look(bootstrap)
    values = [record[2] for record in seen.committed["transactional", 0]]
    assert b"decided" in values
    assert b"undecided" not in values
    ends = {key: end for key, (_, end) in seen.offsets.items() if key[0] == "plain"}
    assert {key: offset for key, (offset, _) in seen.groups["modern"].items()} == ends


def test_its_own_cleaner_goes_on_where_kafkas_ended(data: KafkaData, broker: BrokerProcess) -> None:
    bootstrap = broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
    wanted = last_values(data.seen, "compacted")
    for turn in range(6):
        for number in range(100):
            wanted[b"key-%d" % number] = b"later %d" % turn
            producer.produce("compacted", b"later %d" % turn, b"key-%d" % number)
        assert producer.flush(SECONDS_MAX) == 0
        time.sleep(0.4)
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        seen = look(bootstrap)
        assert last_values(seen, "compacted") == wanted
        if len(seen.committed["compacted", 0]) < 500:
            return
        time.sleep(1)
    raise AssertionError("nothing was cleaned")


def test_a_restart_keeps_it_all(data: KafkaData, tmp_path: Path) -> None:
    shutil.copytree(data.directory, tmp_path / "data")
    with BrokerProcess(tmp_path / "data", settings=SETTINGS) as broker:
        first = look(broker.bootstrap_servers)
        broker.kill()
        broker.start()
        second = look(broker.bootstrap_servers)
    for key in first.committed:
        if key[0] not in ("compacted", "both"):
            assert second.committed[key] == first.committed[key]
    assert second.groups == first.groups
    assert second.topics == first.topics == data.seen.topics
