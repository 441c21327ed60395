"""A reader of committed records that looks on while others write, copy and die: librdkafka's consumer in a thread."""

from __future__ import annotations

import threading
from collections import Counter

from confluent_kafka import Consumer, TopicPartition


class Onlooker:
    """Reads what is committed, from the start, all the time."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.seen: Counter[bytes] = Counter()
        self.failure = ""
        self._is_over = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "onlooker",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        self._thread = threading.Thread(target=self._run, name="onlooker", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            for message in self._consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is None:
                    self.seen[message.value()] += 1
                elif not error.retriable() and error.name() not in ("_TRANSPORT", "_ALL_BROKERS_DOWN"):
                    self.failure = str(error)

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        self._consumer.close()
