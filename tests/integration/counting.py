"""A load that counts upwards, and a judge that looks for what was acknowledged: for tests that kill brokers under it.

The producer is librdkafka's, idempotent, with acks=all: whatever it is told is acknowledged must be there afterwards,
once and in order.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict

import confluent_kafka

PARTITIONS = 3
TOPIC = "survivors"
PATIENCE_SECONDS = 60


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
                # A broker that is frozen keeps its connections open: the client gives up on it after this.
                "socket.timeout.ms": 5000,
                "request.timeout.ms": 5000,
            }
        )
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.newest = dict.fromkeys(range(PARTITIONS), -1)  # of what is acknowledged, by partition
        self.failures: list[str] = []
        self.sent = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Send no more."""
        self._is_over.set()
        self._thread.join()

    def abandon(self) -> None:
        """As after a test that failed: what is still under way is of no interest."""
        self.end()
        self._producer.purge()
        self._producer.flush(1)

    def stop(self) -> None:
        self.end()
        assert self._producer.flush(120) == 0, "records that were neither acknowledged nor refused"

    def wait_for_progress(self) -> None:
        """Until the broker acknowledges again: a kill is only worth something under load."""
        before, deadline = len(self.acknowledged), time.monotonic() + PATIENCE_SECONDS
        while len(self.acknowledged) == before:
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            time.sleep(0.01)

    def wait_for_progress_everywhere(self) -> None:
        """Until something that is sent from now on is acknowledged in every partition."""
        first, deadline = self.sent, time.monotonic() + PATIENCE_SECONDS
        while any(self.newest[partition] < first for partition in range(PARTITIONS)):
            assert time.monotonic() < deadline, f"some partitions acknowledge nothing any more: {self.newest}"
            time.sleep(0.005)

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
        self.newest[message.partition()] = max(self.newest[message.partition()], int(message.value()))


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


def judge(load: Load, bootstrap_servers: str) -> None:
    """Nothing that was acknowledged is lost, doubled or out of order."""
    assert not load.failures, load.failures[:3]
    assert len(load.acknowledged) == load.sent
    found = read_all(bootstrap_servers)
    for (partition, offset), value in load.acknowledged.items():
        assert found[partition][offset] == (offset, value)
    for partition, records in found.items():
        values = [value for _, value in records]
        assert values == sorted(set(values)), f"partition {partition} has repetitions or disorder"
