"""A broker killed without warning under load, again and again: what it acknowledged is there, in order, once."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import BrokerProcess

KILLS = int(os.environ.get("BARNABAS_KILLS", "3"))
PARTITIONS = 3
TOPIC = "survivors"


class Load:
    """An idempotent producer that counts upwards and remembers every acknowledgement."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": 1_800_000,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failures: list[str] = []
        self.sent = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(120) == 0, "records that were neither acknowledged nor refused"

    def wait_for_progress(self) -> None:
        """Until the broker acknowledges again: a kill is only worth something under load."""
        before, deadline = len(self.acknowledged), time.monotonic() + 60
        while len(self.acknowledged) == before:
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            time.sleep(0.01)

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._producer.produce(
                    TOPIC, value=b"%012d" % self.sent, partition=self.sent % PARTITIONS, on_delivery=self._delivered
                )
                self.sent += 1
            except BufferError:
                self._producer.poll(0.05)
            if self.sent % 100 == 0:
                self._producer.poll(0)
                time.sleep(0.005)

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        self.acknowledged[message.partition(), message.offset()] = message.value()


def read_all(bootstrap_servers: str) -> dict[int, list[tuple[int, bytes]]]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "judge", "enable.auto.commit": False, "check.crcs": True}
    )
    found: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    try:
        for partition in range(PARTITIONS):
            low, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(TOPIC, partition), timeout=30)
            assert low == 0
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0)])
            while len(found[partition]) < high:
                for message in consumer.consume(1000, timeout=0.5):
                    assert message.error() is None, message.error()
                    found[partition].append((message.offset(), message.value()))
    finally:
        consumer.close()
    return found


def test_what_was_acknowledged_survives_every_kill(tmp_path: Path) -> None:
    chance = random.Random(20260101)
    broker = BrokerProcess(tmp_path / "data", settings={"log.segment.bytes": str(1024 * 1024)})
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        load = Load(broker.bootstrap_servers)
        load.start()
        for _ in range(KILLS):
            load.wait_for_progress()
            time.sleep(chance.uniform(0, 0.3))
            broker.kill()
            broker.start()
        load.wait_for_progress()
        load.stop()
        assert not load.failures
        assert len(load.acknowledged) == load.sent
        found = read_all(broker.bootstrap_servers)
    finally:
        broker.stop()
    for (partition, offset), value in load.acknowledged.items():
        assert found[partition][offset] == (offset, value)
    for partition, records in found.items():
        values = [value for _, value in records]
        assert values == sorted(set(values)), f"partition {partition} has repetitions or disorder"
    print(f"{KILLS} kills, {load.sent} records acknowledged, none lost, doubled or out of order")
