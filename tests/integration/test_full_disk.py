"""A disk fills up while a broker writes to it, and gets room again: writes are refused, all else goes on."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from memory_disk import disk_of
from talk import Talk, batch, creatable
from waiting import until

from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.testing.broker import BrokerProcess
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

MIB = 1024 * 1024


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings={"log.segment.bytes": str(MIB)}) as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as connection:
        yield connection


def fill(talk: Talk, topic: str, *, size_bytes: int = 100_000, count_max: int = 1000) -> int:
    """Write until a batch is refused; how many were taken."""
    for number in range(count_max):
        row = talk.produce(topic, fresh(b"%d." % number + bytes(size_bytes)))
        if row.error_code:
            assert row.error_code == errors.KAFKA_STORAGE_ERROR.code
            assert "no space left" in row.error_message.lower()
            return number
    raise AssertionError("the disk never filled")


def fresh(*values: bytes) -> bytearray:
    """A batch that retention has no reason to drop."""
    return batch(*values, timestamp=time.time_ns() // 1_000_000)


def read_all(talk: Talk, topic: str) -> list[bytes | None]:
    values: list[bytes | None] = []
    while records := talk.read(topic, len(values)):
        values += [record.value for record in records]
    return values


def test_a_full_disk_refuses_writes_and_nothing_else(broker: Broker, talk: Talk) -> None:
    talk.create("t")
    disk = disk_of(broker)
    disk.capacity_bytes = disk.used_bytes() + 8 * MIB
    count = fill(talk, "t")
    assert len(read_all(talk, "t")) == count
    assert not broker.node.services.store.offline
    broker.clock.advance("1m")  # checkpoints, flushes, retention
    assert not broker.node.services.store.offline
    assert not broker.node.failed.is_set()
    # The broker's own records still have their reserve.
    talk.create("another")
    assert talk.ask(InitProducerIdRequest(transactional_id=None)).error_code == 0
    disk.capacity_bytes += 4 * MIB
    assert talk.produce("t", batch(b"again")).error_code == 0
    assert read_all(talk, "t")[-1] == b"again"
    assert talk.produce("another", batch(b"first")).error_code == 0


@pytest.mark.parametrize("free_bytes", [0, 10, 1000, 70_000])
def test_a_disk_that_others_fill_to_the_last_byte(broker: Broker, talk: Talk, free_bytes: int) -> None:
    talk.create("t", flush_messages="1")
    talk.create("u", cleanup_policy="compact", segment_bytes=str(MIB))
    assert talk.produce("t", fresh(b"before")).error_code == 0
    disk = disk_of(broker)
    disk.capacity_bytes = disk.used_bytes() + free_bytes
    assert talk.produce("t", fresh(bytes(100_000))).error_code == errors.KAFKA_STORAGE_ERROR.code
    row = talk.ask(CreateTopicsRequest(topics=[creatable("v")], timeout_ms=5000)).topics[0]
    assert row.error_code in (errors.NONE.code, errors.KAFKA_STORAGE_ERROR.code)
    broker.clock.advance("10m")
    assert [record.value for record in talk.read("t")] == [b"before"]
    assert not broker.node.failed.is_set()
    assert not broker.node.services.store.offline
    disk.capacity_bytes = None
    broker.clock.advance("10m")
    assert talk.produce("t", fresh(b"after")).error_code == 0
    assert talk.produce("u", fresh(b"after")).error_code == 0
    assert [record.value for record in talk.read("t")] == [b"before", b"after"]
    talk.create("w")
    assert talk.produce("w", fresh(b"new")).error_code == 0


def test_retention_goes_to_work_as_soon_as_room_is_short(broker: Broker, talk: Talk) -> None:
    talk.create("t", segment_bytes=str(MIB), retention_bytes=str(2 * MIB))
    disk = disk_of(broker)
    disk.capacity_bytes = disk.used_bytes() + 16 * MIB
    for number in range(400):  # far more than fits
        records = fresh(b"%d." % number + bytes(100_000))
        # Files are deleted beside the loop, so a writer may come too early: clients retry, and then get in.
        until(lambda records=records: talk.produce("t", records).error_code == 0)
    assert talk.offset("t", -2).offset > 200


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 64 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this system does not let us mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


class Load:
    """Producers of another make that write until they are told to stop, and remember what was acknowledged."""

    def __init__(self, bootstrap_servers: str, topic: str, *, threads: int = 3) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.refused = 0
        self._servers = bootstrap_servers
        self._topic = topic
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 60_000,
                "queue.buffering.max.kbytes": 2048,
            }
        )

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.refused += 1
            else:
                self.acknowledged[message.offset()] = message.value()

        sent = 0
        while not self._stop.is_set():
            value = b"%d/%d/" % (number, sent) + bytes(10_000)
            try:
                producer.produce(self._topic, value, on_delivery=delivered)
                sent += 1
            except BufferError:
                pass
            producer.poll(0.001)
        assert producer.flush(60) == 0

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def consumed(bootstrap_servers: str, topic: str, end: int) -> dict[int, bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "checker", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: dict[int, bytes] = {}
        while len(found) < end:
            for message in consumer.consume(1000, timeout=10):
                assert message.error() is None, message.error()
                found[message.offset()] = message.value()
        return found
    finally:
        consumer.close()


def free_bytes(path: Path) -> int:
    facts = os.statvfs(path)
    return facts.f_bavail * facts.f_frsize


def stuff(path: Path, size_bytes: int | None = None) -> None:
    """Write a file of this size, or to the last byte of the disk."""
    with path.open("wb", buffering=0) as file:
        if size_bytes is not None:
            file.write(bytes(size_bytes))
            return
        for piece_bytes in (1 << 16, 1 << 12, 1):
            try:
                while file.write(bytes(piece_bytes)):
                    pass
            except OSError:
                continue


def test_a_small_disk_is_filled_to_the_brim_under_load_and_freed(small_disk: Path) -> None:
    """Nothing that was acknowledged is lost, and no restart is needed."""
    stuff(small_disk / "large", 32 * MIB)
    with BrokerProcess(small_disk / "data", settings={"log.segment.bytes": str(4 * MIB)}) as broker:
        with Talk(broker.bootstrap_servers) as talk:
            talk.create("t")
            talk.create("u")
            load = Load(broker.bootstrap_servers, "t")
            try:
                until(lambda: free_bytes(small_disk) < 4 * MIB)
                until(lambda: talk.produce("u", fresh(bytes(10_000))).error_code == errors.KAFKA_STORAGE_ERROR.code)
                talk.create("made-with-the-reserve")
                stuff(small_disk / "rest")  # others take what is left
                assert free_bytes(small_disk) == 0
                assert talk.produce("u", fresh(b"x")).error_code == errors.KAFKA_STORAGE_ERROR.code
                before = len(load.acknowledged)
                time.sleep(7)  # checkpoints, flushes and retention come round
                assert talk.read("t"), "reads go on"
                (small_disk / "rest").unlink()
                (small_disk / "large").unlink()
                until(lambda: len(load.acknowledged) > before + 100)
            finally:
                load.stop()
            assert talk.produce("u", fresh(b"after")).error_code == 0
            end = talk.offset("t", -1).offset
        found = consumed(broker.bootstrap_servers, "t", end)
        lost = [offset for offset, value in load.acknowledged.items() if found.get(offset) != value]
        assert not lost
        assert load.refused == 0, "clients try again until there is room"
        values = list(found.values())
        assert len(set(values)) == len(values), "and nothing is there twice"
        assert broker.process is not None
        assert broker.process.poll() is None
