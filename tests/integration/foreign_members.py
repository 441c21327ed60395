"""Members of a group that are not ours, each in a thread of its own: librdkafka's and kafka-python's consumers."""

from __future__ import annotations

import threading

import confluent_kafka


class Librdkafka:
    """A member of the group in a thread of its own, committing what it has read before it reads on."""

    def __init__(self, servers: str, group: str, topic: str, strategy: str) -> None:
        classic = {
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 10_000,
        }
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **({"group.protocol": "consumer"} if strategy == "consumer" else classic),
            }
        )
        self._consumer.subscribe([topic])
        self.seen: list[int] = []
        self.is_over = threading.Event()
        self.partition_count = 0

    def run(self) -> None:
        while not self.is_over.is_set():
            messages = self._consumer.consume(20, timeout=0.1)
            self.seen += [int(message.value() or b"") for message in messages if message.error() is None]
            if messages:
                self._consumer.commit(asynchronous=False)
            self.partition_count = len(self._consumer.assignment())
        self._consumer.close()


class KafkaPython:
    def __init__(self, servers: str, group: str, topic: str, strategy: str) -> None:
        import kafka
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        assert strategy == "range"
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
            session_timeout_ms=10_000,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        self._consumer.subscribe([topic])
        # Who joins before it has heard of the topic joins again, and may forget what it is assigned then.
        assert self._consumer.partitions_for_topic(topic)
        self.seen: list[int] = []
        self.is_over = threading.Event()
        self.partition_count = 0

    def run(self) -> None:
        while not self.is_over.is_set():
            polled = self._consumer.poll(timeout_ms=100, max_records=20)
            self.seen += [int(record.value) for records in polled.values() for record in records]
            if polled:
                self._consumer.commit()
            self.partition_count = len(self._consumer.assignment())
        self._consumer.close(autocommit=False)
