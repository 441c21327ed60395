"""Compaction as a client sees it: the last value of each key, at the offset where it was written."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from barnabas.model import ids
from barnabas.storage.cleaner_status import CleanerStatus
from barnabas.testing import Broker

SECONDS_MAX = 30.0
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1024 * 1024),
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "1000",
}
SETTINGS = {"log.cleaner.backoff.ms": "20", "log.cleaner.dedupe.buffer.size": str(1024 * 1024)}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings=SETTINGS) as broker:
        yield broker


def create(broker: Broker, name: str, **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    config = {**COMPACTED, **{key.replace("_", "."): value for key, value in settings.items()}}
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(SECONDS_MAX)


def alter(broker: Broker, name: str, setting: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)


class Written:
    """All that was written, by offset, and the last of each key."""

    def __init__(self, broker: Broker, topic: str, **settings: Any) -> None:
        self.by_offset: dict[int, tuple[bytes, bytes | None]] = {}
        self.last: dict[bytes, int] = {}
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5, **settings})

    def write(self, records: list[tuple[bytes, bytes | None]]) -> None:
        for key, value in records:
            self._producer.produce(self._topic, key=key, value=value, on_delivery=self._delivered)
            self._producer.poll(0)
        assert self._producer.flush(SECONDS_MAX) == 0

    def _delivered(self, error: Any, message: Any) -> None:
        assert error is None
        self.by_offset[message.offset()] = message.key(), message.value()
        self.last[message.key()] = max(message.offset(), self.last.get(message.key(), -1))


def read(broker: Broker, topic: str) -> dict[int, tuple[bytes, bytes | None]]:
    """What a consumer gets from the start to the end, by offset."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "none", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: dict[int, tuple[bytes, bytes | None]] = {}
    try:
        while True:
            message = consumer.poll(SECONDS_MAX)
            assert message is not None
            if message.error() is not None:
                return found
            found[message.offset()] = message.key(), message.value()
    finally:
        consumer.close()


def status(broker: Broker, topic: str) -> CleanerStatus:
    found = broker.node.services.cleaner.status(ids.TopicPartition(topic, 0))
    assert found is not None
    return found


def wait_for(broker: Broker, topic: str, *states: str, rounds: int = 0) -> CleanerStatus:
    async def wait() -> CleanerStatus:
        cleaner = broker.node.services.cleaner
        while (found := status(broker, topic)).state not in states or cleaner.rounds_count < rounds:
            await asyncio.sleep(0.005)
        return found

    return broker.run(wait(), seconds=SECONDS_MAX)


def roll(broker: Broker, topic: str) -> None:
    log = broker.node.services.store.logs[ids.TopicPartition(topic, 0)]

    async def roll() -> None:
        log.roll(log.clock.wall_ms())

    broker.run(roll())


def keyed(count: int, keys: int, seed: int = 1) -> list[tuple[bytes, bytes | None]]:
    chance = random.Random(seed)
    return [(b"key %d" % chance.randrange(keys), chance.randbytes(1000)) for _ in range(count)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_consumer_sees_the_last_value_of_each_key(broker: Broker, codec: str) -> None:
    create(broker, "keyed")
    written = Written(broker, "keyed", **{"compression.type": codec, "enable.idempotence": True})
    written.write(keyed(3000, 50))
    roll(broker, "keyed")
    found = wait_for(broker, "keyed", "clean")
    assert found.last is not None
    assert 0 < found.last.keys <= 50  # of what came after the round before it, if there was one
    seen = read(broker, "keyed")
    assert seen == {offset: written.by_offset[offset] for offset in written.last.values()}
    # The producer goes on where it was.
    written.write([(b"key 1", b"after")])
    assert read(broker, "keyed")[3000] == (b"key 1", b"after")


def test_a_deleted_key_is_gone_after_its_time_and_stays_gone(broker: Broker) -> None:
    create(broker, "keyed")
    written = Written(broker, "keyed")
    written.write([*keyed(200, 10), (b"key 3", None)])
    roll(broker, "keyed")
    wait_for(broker, "keyed", "clean", rounds=1)
    tombstone = written.last[b"key 3"]
    assert read(broker, "keyed")[tombstone] == (b"key 3", None)
    broker.clock.advance("2s")
    written.write([(b"other", b"x")])
    roll(broker, "keyed")
    wait_for(broker, "keyed", "clean", rounds=2)
    seen = read(broker, "keyed")
    assert b"key 3" not in {key for key, _ in seen.values()}
    assert len(seen) == 10
    assert seen.items() <= written.by_offset.items()


def test_the_policy_may_change_while_the_broker_runs(broker: Broker) -> None:
    create(broker, "keyed", cleanup_policy="delete")
    written = Written(broker, "keyed")
    written.write(keyed(100, 5))
    roll(broker, "keyed")
    assert status(broker, "keyed").state == "not compacted"
    alter(broker, "keyed", "cleanup.policy", "compact,delete")
    wait_for(broker, "keyed", "clean")
    assert set(read(broker, "keyed")) == set(written.last.values())
    alter(broker, "keyed", "cleanup.policy", "delete")
    wait_for(broker, "keyed", "not compacted")


def test_what_was_cleaned_is_remembered_over_a_restart(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path, settings=SETTINGS) as broker:
        create(broker, "keyed")
        written = Written(broker, "keyed")
        written.write(keyed(500, 20))
        roll(broker, "keyed")
        wait_for(broker, "keyed", "clean")
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\nkeyed 0 500\n"
    with Broker(data_dir=tmp_path, settings=SETTINGS) as broker:
        assert set(read(broker, "keyed")) == set(written.last.values())
        found = status(broker, "keyed")
        assert found.cleanable is not None
        assert found.cleanable.first_dirty_offset == 500


def test_a_disabled_cleaner_cleans_nothing_and_says_so() -> None:
    with Broker(settings={**SETTINGS, "log.cleaner.enable": "false"}) as broker:
        create(broker, "keyed")
        Written(broker, "keyed").write(keyed(50, 5))
        roll(broker, "keyed")
        found = status(broker, "keyed")
        assert (found.state, found.reason) == ("disabled", "log.cleaner.enable is false")
        assert len(read(broker, "keyed")) == 50


def test_group_offsets_survive_the_cleaning_of_their_topic(tmp_path: Path) -> None:
    def consumer(broker: Broker) -> Consumer:
        return Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})

    settings = {**SETTINGS, "offsets.topic.num.partitions": "1", "log.cleaner.min.cleanable.ratio": "0"}
    with Broker(data_dir=tmp_path, settings=settings) as broker:
        create(broker, "keyed")
        member = consumer(broker)
        for offset in range(40):
            member.commit(offsets=[TopicPartition("keyed", 0, offset)], asynchronous=False)
        member.close()
        log = broker.node.services.store.logs[ids.TopicPartition("__consumer_offsets", 0)]
        size_bytes = log.size_bytes
        roll(broker, "__consumer_offsets")
        wait_for(broker, "__consumer_offsets", "clean")
        assert log.size_bytes < size_bytes / 10
    with Broker(data_dir=tmp_path, settings=settings) as broker:
        member = consumer(broker)
        found = member.committed([TopicPartition("keyed", 0)], timeout=SECONDS_MAX)
        assert found[0].offset == 39
        member.close()
