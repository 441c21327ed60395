"""Members of groups of the consumer protocol for the compatibility tests: librdkafka's and Java's, with the same face.

A member reads in a thread or a process of its own, notes what it has and every record, and commits what it has read.
Java's is a program that can be killed; `java/GroupMember.java` is compiled once into the cache.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from group_members import DEADLINE_SECONDS, POLL_SECONDS
from tools.cache import cache_directory, locked
from tools.kafka_jars import class_path, java_command, program

SOURCE = Path(__file__).parent / "java" / "GroupMember.java"
COMPILE_SECONDS_MAX = 120
COMMIT_AGAIN = (22, 25, 27, 110, 113)  # the group moved on; what was read is committed with the next batch

Partition = tuple[str, int]


class ConsumerMember:
    """`topics` are names, or one pattern that begins with ^."""

    def __init__(
        self, bootstrap: str, group: str, *topics: str, instance: str | None = None, protocol: str = "consumer"
    ) -> None:
        self.bootstrap, self.group, self.topics = bootstrap, group, topics
        self.instance, self.protocol = instance, protocol
        self.seen: list[tuple[str, int, int]] = []  # topic, partition, offset
        self.assigned: frozenset[Partition] = frozenset()
        self.assignments = 0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name=f"member:{group}", daemon=True)

    def start(self) -> ConsumerMember:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Leave the group in good order; a static member will be expected back."""
        self._end()
        self._thread.join(DEADLINE_SECONDS)
        if self.failure is not None:
            raise self.failure

    def _end(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        raise NotImplementedError

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:  # noqa: BLE001  # whatever it is, the test must hear of it
            self.failure = failure

    def _gain(self, partitions: frozenset[Partition]) -> None:
        self.assigned |= partitions
        self.assignments += bool(partitions)

    def _lose(self, partitions: frozenset[Partition]) -> None:
        self.assigned -= partitions


class Confluent(ConsumerMember):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_stopping = threading.Event()

    def _end(self) -> None:
        self._is_stopping.set()

    def _run(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "group.protocol": self.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 500,
            "log_level": 2,
        }
        if self.protocol == "classic":
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
            settings["partition.assignment.strategy"] = "cooperative-sticky"
        if self.instance is not None:
            settings["group.instance.id"] = self.instance
        consumer = Consumer(settings)

        def on_assign(_: Any, partitions: list[Any]) -> None:
            self._gain(frozenset((each.topic, each.partition) for each in partitions))

        def on_revoke(_: Any, partitions: list[Any]) -> None:
            self._lose(frozenset((each.topic, each.partition) for each in partitions))

        consumer.subscribe(list(self.topics), on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
        try:
            while not self._is_stopping.is_set():
                messages = [each for each in consumer.consume(100, POLL_SECONDS) if each.error() is None]
                self.seen += [(each.topic() or "", each.partition() or 0, each.offset() or 0) for each in messages]
                if messages:
                    try:
                        consumer.commit(asynchronous=False)
                    except KafkaException as error:
                        if error.args[0].code() not in COMMIT_AGAIN:
                            raise
        finally:
            consumer.close()


class Java(ConsumerMember):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        settings = [f"group.protocol={self.protocol}", "metadata.max.age.ms=500"]
        if self.protocol == "classic":
            settings += ["session.timeout.ms=6000", "heartbeat.interval.ms=200"]
            settings.append("partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor")
        if self.instance is not None:
            settings.append(f"group.instance.id={self.instance}")
        named = ",".join(self.topics)
        command = java_command(
            "GroupMember",
            *(self.bootstrap, self.group, f"/{named[1:]}" if named.startswith("^") else named, *settings),
            options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M"),
            classes=str(java_classes()),
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def kill(self) -> None:
        """Without a chance to say goodbye."""
        self._process.kill()
        self._thread.join(DEADLINE_SECONDS)

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _run(self) -> None:
        process = self._process
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        listener = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        listener.start()
        for line in process.stdout:
            row = json.loads(line)
            if row["event"] == "record":
                self.seen.append((row["topic"], row["partition"], row["offset"]))
                continue
            if row["event"] == "committed":
                continue
            partitions = frozenset((topic, partition) for topic, partition in row["partitions"])
            (self._gain if row["event"] == "assigned" else self._lose)(partitions)
        code = process.wait(DEADLINE_SECONDS)
        listener.join(DEADLINE_SECONDS)
        process.stdout.close()
        process.stderr.close()
        if code > 0:
            raise AssertionError(f"Java's member ended with {code}:\n{''.join(said)[-2000:]}")


def java_classes() -> Path:
    directory = cache_directory("java", hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16])
    with locked("java-group-member"):
        if not (directory / "GroupMember.class").exists():
            command = [program("javac"), "-cp", class_path(), "-d", str(directory), str(SOURCE)]
            subprocess.run(command, check=True, timeout=COMPILE_SECONDS_MAX)
    return directory


KINDS: dict[str, type[ConsumerMember]] = {"confluent": Confluent, "java": Java}
