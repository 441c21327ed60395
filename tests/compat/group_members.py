"""Members of groups for the compatibility tests: one small adapter for each client, all with the same face.

A member reads in a thread of its own, notes every record, and commits what it has read before it reads on. So nothing
is read twice unless a commit was lost. `MEMBERS` is the list; `run_as_process` is a member that can be killed.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

POLL_SECONDS = 0.05
DEADLINE_SECONDS = 60.0


def until(condition: Callable[[], bool], what: str, *, seconds: float = DEADLINE_SECONDS) -> None:
    """Wait for something that happens in another thread or on the broker."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.01)


class Member:
    name: ClassVar[str]

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        session_ms: int = 6000,
        instance: str | None = None,
        assignor: str = "range",
    ) -> None:
        self.bootstrap, self.group, self.topic = bootstrap, group, topic
        self.session_ms, self.instance, self.assignor = session_ms, instance, assignor
        self.seen: list[tuple[int, int, bytes]] = []  # partition, offset, value
        self.assigned: frozenset[int] = frozenset()
        self.rebalances = 0
        self.failure: BaseException | None = None
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=f"member:{self.name}", daemon=True)

    def start(self) -> Member:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Leave the group in good order."""
        self._is_stopping.set()
        self._thread.join(DEADLINE_SECONDS)
        if self.failure is not None:
            raise self.failure

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as failure:  # noqa: BLE001  # whatever it is, the test must hear of it
            self.failure = failure
        # A consumer of kafka-python leaves sockets to the collector, which complains about them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    def _run(self) -> None:
        raise NotImplementedError


class ConfluentMember(Member):
    name = "confluent"

    def _run(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "session.timeout.ms": self.session_ms,
            "heartbeat.interval.ms": self.session_ms // 5,
            "partition.assignment.strategy": self.assignor,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 2,
        }
        if self.instance is not None:
            settings["group.instance.id"] = self.instance
        consumer = Consumer(settings)

        def on_assign(_: Any, partitions: list[Any]) -> None:
            self.rebalances += 1
            added = frozenset(each.partition for each in partitions)
            self.assigned = self.assigned | added if "cooperative" in self.assignor else added

        def commit() -> None:
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                # A rebalance has begun or just ended: what was read is committed with the next commit.
                if error.args[0].name() not in ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "_NO_OFFSET"):
                    raise

        def on_revoke(_: Any, partitions: list[Any]) -> None:
            commit()
            self.assigned -= frozenset(each.partition for each in partitions)

        consumer.subscribe([self.topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
        try:
            while not self._is_stopping.is_set():
                messages = [each for each in consumer.consume(100, POLL_SECONDS) if each.error() is None]
                for each in messages:
                    self.seen.append((each.partition(), each.offset(), each.value() or b""))
                if messages:
                    commit()
        finally:
            consumer.close()


class KafkaPythonMember(Member):
    name = "kafka-python"

    def _run(self) -> None:
        from kafka import KafkaConsumer
        from kafka.consumer.subscription_state import ConsumerRebalanceListener
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        member = self
        kinds = (
            RangePartitionAssignor,
            RoundRobinPartitionAssignor,
            StickyPartitionAssignor,
            CooperativeStickyAssignor,
        )

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                member.assigned -= frozenset(each.partition for each in revoked)

            def on_partitions_assigned(self, assigned: Any) -> None:
                member.rebalances += 1
                added = frozenset(each.partition for each in assigned)
                member.assigned = member.assigned | added if "cooperative" in member.assignor else added

        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            group_instance_id=self.instance,
            session_timeout_ms=self.session_ms,
            heartbeat_interval_ms=self.session_ms // 5,
            partition_assignment_strategy=[kind for kind in kinds if kind.name == self.assignor],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            # A leader that has not heard of a new topic yet assigns none of it; this is how soon it looks again.
            metadata_max_age_ms=1000,
        )
        consumer.subscribe([self.topic], listener=Listener())
        try:
            while not self._is_stopping.is_set():
                found = consumer.poll(timeout_ms=int(POLL_SECONDS * 1000), max_records=100)
                for partition, records in found.items():
                    self.seen += [(partition.partition, each.offset, each.value) for each in records]
                if found:
                    consumer.commit()
        finally:
            consumer.close()


class AiokafkaMember(Member):
    name = "aiokafka"

    def _run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        member = self
        kinds = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Any) -> None:
                member.assigned = frozenset()

            async def on_partitions_assigned(self, assigned: Any) -> None:
                member.rebalances += 1
                member.assigned = frozenset(each.partition for each in assigned)

        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            group_instance_id=self.instance,
            session_timeout_ms=self.session_ms,
            heartbeat_interval_ms=self.session_ms // 5,
            rebalance_timeout_ms=self.session_ms,
            partition_assignment_strategy=[kind for kind in kinds if kind.name == self.assignor],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        consumer.subscribe([self.topic], listener=Listener())
        await consumer.start()
        try:
            while not self._is_stopping.is_set():
                found = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000), max_records=100)
                for partition, records in found.items():
                    self.seen += [(partition.partition, each.offset, each.value or b"") for each in records]
                if found:
                    await consumer.commit()
        finally:
            await consumer.stop()


MEMBERS: dict[str, type[Member]] = {each.name: each for each in (ConfluentMember, KafkaPythonMember, AiokafkaMember)}


def run_as_process(bootstrap: str, group: str, topic: str, session_ms: int) -> multiprocessing.process.BaseProcess:
    """A member without a chance to say goodbye when it is killed."""
    context = multiprocessing.get_context("spawn")
    arguments = (list(sys.path), bootstrap, group, topic, session_ms)
    process = context.Process(target=_live, args=arguments, daemon=True)
    process.start()
    return process


def _live(path: list[str], bootstrap: str, group: str, topic: str, session_ms: int) -> None:
    sys.path[:] = path
    ConfluentMember(bootstrap, group, topic, session_ms=session_ms)._run()
