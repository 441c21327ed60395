"""A data directory as Apache Kafka leaves it, and what clients saw of it before.

Topics of every kind, compacted ones that its cleaner has been through, groups of both protocols, transactions that are
committed, aborted and still open, users, settings. Only ``test_kafka_directory.py`` uses this.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.peers.kafka import KafkaPeer
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

SECONDS_MAX = 30.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = {
    "plain": {},
    "compacted": {
        "cleanup.policy": "compact",
        "segment.ms": "300",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100",
    },
    "both": {"cleanup.policy": "compact,delete", "retention.ms": "-1", "segment.ms": "500"},
    "appended": {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd", "max.message.bytes": "2000000"},
    "transactional": {"segment.ms": "400"},
    "shortened": {"segment.ms": "200"},
}
PARTITIONS = {"plain": 3}
SETTINGS = {"log.cleaner.backoff.ms": "200", "log.roll.jitter.ms": "0", "num.partitions": "1"}

Content = dict[tuple[str, int], list[tuple[Any, ...]]]


@dataclass
class Seen:
    """What clients see of a broker."""

    topics: dict[str, int] = field(default_factory=dict)
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    offsets: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    committed: Content = field(default_factory=dict)
    uncommitted: Content = field(default_factory=dict)
    groups: dict[str, dict[tuple[str, int], tuple[int, str | None]]] = field(default_factory=dict)
    users: dict[str, list[tuple[str, int]]] = field(default_factory=dict)


def look(bootstrap: str) -> Seen:
    """Everything that a client can ask for."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    seen = Seen()
    for name, topic in admin.list_topics(timeout=SECONDS_MAX).topics.items():
        if not name.startswith("__"):
            seen.topics[name] = len(topic.partitions)
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in seen.topics]
    for resource, future in admin.describe_configs(resources).items():
        seen.configs[resource.name] = {
            entry.name: entry.value for entry in future.result(SECONDS_MAX).values() if entry.source == 1
        }
    keys = [TopicPartition(name, index) for name, count in seen.topics.items() for index in range(count)]
    for spec, place in ((OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 1)):
        for key, future in admin.list_offsets(dict.fromkeys(keys, spec)).items():
            at = (key.topic, key.partition)
            before = seen.offsets.get(at, (-1, -1))
            value = future.result(SECONDS_MAX).offset
            seen.offsets[at] = (value, before[1]) if place == 0 else (before[0], value)
    for isolation, target in (("read_committed", seen.committed), ("read_uncommitted", seen.uncommitted)):
        for key in keys:
            target[key.topic, key.partition] = _read(bootstrap, key, isolation)
    listed = admin.list_consumer_groups().result(SECONDS_MAX)
    for group in sorted(each.group_id for each in listed.valid):
        if group.startswith("reader-"):
            continue
        (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        found = future.result(SECONDS_MAX).topic_partitions
        seen.groups[group] = {(each.topic, each.partition): (each.offset, each.metadata or None) for each in found}
    for name, future in admin.describe_user_scram_credentials(["alice"]).items():
        seen.users[name] = sorted(
            (info.mechanism.name, info.iterations) for info in future.result(SECONDS_MAX).scram_credential_infos
        )
    return seen


def _read(bootstrap: str, key: TopicPartition, isolation: str) -> list[tuple[Any, ...]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader-",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 2,
        }
    )
    consumer.assign([TopicPartition(key.topic, key.partition, OFFSET_BEGINNING)])
    found: list[tuple[Any, ...]] = []
    deadline = time.monotonic() + SECONDS_MAX
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                assert message.error().code() == -191, message.error()  # the end of the partition
                return found
            found.append((message.offset(), message.key(), message.value(), message.timestamp(), message.headers()))
    finally:
        consumer.close()
    raise AssertionError(f"the end of {key} was not reached; {len(found)} records were")


def write(bootstrap: str) -> None:
    """Give the broker everything a broker may have to keep."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    wanted = [
        NewTopic(name, num_partitions=PARTITIONS.get(name, 1), replication_factor=1, config=config)
        for name, config in {**TOPICS, "gone": {}}.items()
    ]
    for future in admin.create_topics(wanted).values():
        future.result(SECONDS_MAX)
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
        for number in range(200):
            producer.produce(
                "plain", b"%d" % number, b"k%d" % number, partition=number % 3, headers=[("codec", codec.encode())]
            )
            producer.produce("appended", b"value %d" % number)
        assert producer.flush(SECONDS_MAX) == 0
    _write_keyed(bootstrap)
    _write_transactions(bootstrap)
    _write_shortened(bootstrap, admin)
    _commit(bootstrap)
    for future in admin.delete_topics(["gone"]).values():
        future.result(SECONDS_MAX)
    user = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    for future in admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("alice", user, b"a password", b"salt")]
    ).values():
        future.result(SECONDS_MAX)


def _write_keyed(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
    for turn in range(8):
        for number in range(150):
            value = None if number % 10 == turn else b"%d/%d" % (turn, number)
            producer.produce("compacted", value, b"key-%d" % number)
            producer.produce("both", value, b"key-%d" % number)
        assert producer.flush(SECONDS_MAX) == 0
        time.sleep(0.4)  # the segments end by their age


def _write_transactions(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer", "linger.ms": 1})
    producer.init_transactions(SECONDS_MAX)
    for turn in range(12):
        producer.begin_transaction()
        for number in range(20):
            producer.produce("transactional", b"%d/%d" % (turn, number), b"%d" % number)
            producer.produce("compacted", b"t%d/%d" % (turn, number), b"key-%d" % number)
        if turn == 5:
            consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "exactly-once"})
            producer.send_offsets_to_transaction(
                [TopicPartition("plain", 0, 42)], consumer.consumer_group_metadata(), SECONDS_MAX
            )
            consumer.close()
        if turn % 3 == 2 and turn != 5:
            producer.abort_transaction(SECONDS_MAX)
        else:
            producer.commit_transaction(SECONDS_MAX)
        time.sleep(0.1)
    # And one that nobody ends: its time-out is longer than the test.
    left_open = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "left-open",
            "transaction.timeout.ms": 600_000,
            "log_level": 0,
        }
    )
    left_open.init_transactions(SECONDS_MAX)
    left_open.begin_transaction()
    left_open.produce("transactional", b"undecided", b"u")
    left_open.flush(SECONDS_MAX)
    OPEN.append(left_open)


OPEN: list[Producer] = []  # an open transaction would be aborted if its producer were collected


def _write_shortened(bootstrap: str, admin: AdminClient) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for turn in range(5):
        for number in range(50):
            producer.produce("shortened", b"%d/%d" % (turn, number))
        assert producer.flush(SECONDS_MAX) == 0
        time.sleep(0.25)
    for future in admin.delete_records([TopicPartition("shortened", 0, 120)]).values():
        future.result(SECONDS_MAX)


def _commit(bootstrap: str) -> None:
    for group, protocol in (("classic", "classic"), ("modern", "consumer")):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["plain"])
        deadline = time.monotonic() + SECONDS_MAX
        taken = 0
        while taken < 600 and time.monotonic() < deadline:
            taken += len(consumer.consume(100, timeout=1.0))
        assert taken >= 600
        consumer.commit(offsets=[TopicPartition("plain", index, 50 + index) for index in range(3)], asynchronous=False)
        consumer.close()


class KafkaData:
    """Kafka runs, is written to and looked at, and then stops or is killed."""

    def __init__(self, *, is_killed: bool) -> None:
        peer = KafkaPeer(SETTINGS)
        self.peer = peer
        try:
            peer.start()
            write(peer.bootstrap)
            time.sleep(3)  # its cleaner goes through the compacted topics, its checkpoints are written
            self.seen = look(peer.bootstrap)
            if is_killed:
                for pid in peer.pids:
                    os.kill(pid, signal.SIGKILL)
            peer.stop()
        except BaseException:
            peer.stop()
            peer.remove()
            raise

    @property
    def directory(self) -> Path:
        return self.peer.data_dir

    def remove(self) -> None:
        OPEN.clear()
        self.peer.remove()
