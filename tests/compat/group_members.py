"""Members of groups for the compatibility tests: one small adapter for each client, all with the same face.

A member reads in a thread of its own, notes every record, and commits what it has read before it reads on, and before
it gives a partition up. What happens to it is a list of events, from which `group_judge.py` can tell whether a record
was lost or read again. `MEMBERS` is the list; `member_process.py` makes processes of them, which can be killed.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Collection, Iterable
from typing import Any, ClassVar, NamedTuple

POLL_SECONDS = 0.05
# kafka-python throws an assignment away that arrives between two polls, and joins again: a poll that ends only when
# there are records, or after a while, leaves it the time to join once.
PATIENT_POLL_SECONDS = 0.25
DEADLINE_SECONDS = 60.0
HEARTBEAT_MS = 300  # how soon a member hears that others come and go
COMMIT_AGAIN = (
    *("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "_NO_OFFSET"),
    *("STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH"),
)


# Events: what was read (partition, offset, value), what the broker has taken as committed (partition, offset), and
# what the member has after it was given partitions, or has left after it gave some up.
READ = "read"
COMMITTED = "committed"
GIVEN = "given"
LEFT = "left"


class Event(NamedTuple):
    at: float  # by the clock that all processes of a machine share
    kind: str
    rows: list[Any]


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
        protocol: str = "classic",
    ) -> None:
        self.bootstrap, self.group, self.topic = bootstrap, group, topic
        self.session_ms, self.instance, self.assignor, self.protocol = session_ms, instance, assignor, protocol
        self.events: list[Event] = []
        self.seen: list[tuple[int, int, bytes]] = []  # partition, offset, value
        self.assigned: frozenset[int] = frozenset()
        self.rebalances = 0
        self.failure: BaseException | None = None
        self._uncommitted: dict[int, int] = {}
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=f"member:{self.name}", daemon=True)

    @property
    def is_incremental(self) -> bool:
        """Whether it is told what is new to it, and not all that it has."""
        return self.protocol == "consumer" or "cooperative" in self.assignor

    def start(self) -> Member:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Leave the group in good order; a static member will be expected back."""
        self._is_stopping.set()
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} did not leave its group"
        if self.failure is not None:
            raise self.failure

    def take(self, event: Event) -> None:
        """Something has happened to the member."""
        if event.kind == READ:
            self.seen += event.rows
        elif event.kind in (GIVEN, LEFT):
            self.rebalances += event.kind == GIVEN
            self.assigned = frozenset(event.rows)
        self.events.append(event)

    # --- what the adapters call -----------------------------------------------------------------------------------

    def _note(self, kind: str, rows: Iterable[Any]) -> None:
        self.take(Event(time.monotonic(), kind, list(rows)))

    def _read(self, records: Iterable[Any]) -> None:
        """Records of any client with the attributes that most give them."""
        rows = [(each.partition, each.offset, each.value or b"") for each in records]
        self._uncommitted |= {partition: offset + 1 for partition, offset, _ in rows}
        self._note(READ, rows)

    def _committed(self, offsets: dict[int, int]) -> None:
        self._note(COMMITTED, offsets.items())
        for partition, offset in offsets.items():
            if self._uncommitted.get(partition) == offset:
                del self._uncommitted[partition]

    def _gain(self, partitions: Collection[int]) -> None:
        self._note(GIVEN, sorted(self.assigned.union(partitions) if self.is_incremental else set(partitions)))

    def _lose(self, partitions: Collection[int]) -> None:
        for partition in partitions:
            self._uncommitted.pop(partition, None)
        self._note(LEFT, sorted(self.assigned.difference(partitions)))

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

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "group.protocol": self.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 2,
        }
        if self.protocol == "consumer":
            settings["group.remote.assignor"] = self.assignor
        else:
            settings |= {"session.timeout.ms": self.session_ms, "heartbeat.interval.ms": HEARTBEAT_MS}
            settings["partition.assignment.strategy"] = self.assignor
        if self.instance is not None:
            settings["group.instance.id"] = self.instance
        return settings

    def _run(self) -> None:
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        consumer = Consumer(self._settings())

        def on_assign(_: Any, partitions: list[Any]) -> None:
            self._gain([each.partition for each in partitions])

        def commit() -> None:
            offsets = dict(self._uncommitted)
            places = [TopicPartition(self.topic, partition, offset) for partition, offset in offsets.items()]
            try:
                done = consumer.commit(offsets=places, asynchronous=False) if places else []
            except KafkaException as error:
                # A rebalance has begun or just ended: what was read is committed with the next commit.
                if error.args[0].name() not in COMMIT_AGAIN:
                    raise
                return
            self._committed({each.partition: each.offset for each in done or () if each.error is None})

        def on_revoke(_: Any, partitions: list[Any]) -> None:
            commit()
            self._lose([each.partition for each in partitions])

        def on_lost(_: Any, partitions: list[Any]) -> None:
            self._lose([each.partition for each in partitions])

        consumer.subscribe([self.topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        try:
            while not self._is_stopping.is_set():
                messages = [each for each in consumer.consume(100, POLL_SECONDS) if each.error() is None]
                if messages:
                    self._read(_Row(each.partition(), each.offset(), each.value()) for each in messages)
                    commit()
        finally:
            consumer.close()


class KafkaPythonMember(Member):
    name = "kafka-python"

    def _run(self) -> None:
        from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
        from kafka.consumer.subscription_state import ConsumerRebalanceListener
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
        from kafka.errors import (
            CommitFailedError,
            IllegalGenerationError,
            RebalanceInProgressError,
            UnknownMemberIdError,
        )

        member = self
        kinds = (
            RangePartitionAssignor,
            RoundRobinPartitionAssignor,
            StickyPartitionAssignor,
            CooperativeStickyAssignor,
        )

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                commit()
                member._lose([each.partition for each in revoked])

            def on_partitions_assigned(self, assigned: Any) -> None:
                member._gain([each.partition for each in assigned])

        def commit() -> None:
            offsets = dict(self._uncommitted)
            try:
                if offsets:
                    consumer.commit(
                        {
                            TopicPartition(self.topic, partition): OffsetAndMetadata(offset, "", -1)
                            for partition, offset in offsets.items()
                        }
                    )
            except (CommitFailedError, RebalanceInProgressError, IllegalGenerationError, UnknownMemberIdError):
                return
            self._committed(offsets)

        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            group_instance_id=self.instance,
            session_timeout_ms=self.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=[kind for kind in kinds if kind.name == self.assignor],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        consumer.subscribe([self.topic], listener=Listener())
        # A leader that has not heard of its topics yet joins again when it has. If the poll in which it does is over
        # before the answer is there, this client forgets its assignment and reads nothing any more.
        assert consumer.partitions_for_topic(self.topic)
        try:
            while not self._is_stopping.is_set():
                found = consumer.poll(timeout_ms=int(PATIENT_POLL_SECONDS * 1000), max_records=100)
                if found:
                    self._read(each for records in found.values() for each in records)
                    commit()
        finally:
            consumer.close()


class AiokafkaMember(Member):
    name = "aiokafka"

    def _run(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
        from aiokafka.errors import CommitFailedError, IllegalStateError

        member = self
        kinds = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Any) -> None:
                await commit()
                member._lose([each.partition for each in revoked])

            async def on_partitions_assigned(self, assigned: Any) -> None:
                member._gain([each.partition for each in assigned])

        one_at_a_time = asyncio.Lock()

        async def commit() -> None:
            async with one_at_a_time:
                offsets = dict(self._uncommitted)
                try:
                    if offsets:
                        await consumer.commit(
                            {TopicPartition(self.topic, partition): offset for partition, offset in offsets.items()}
                        )
                except (CommitFailedError, IllegalStateError):
                    return
                self._committed(offsets)

        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            group_instance_id=self.instance,
            session_timeout_ms=self.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
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
                if found:
                    self._read(each for records in found.values() for each in records)
                    await commit()
        finally:
            await consumer.stop()


class _Row(NamedTuple):
    partition: int
    offset: int
    value: bytes | None


MEMBERS: dict[str, type[Member]] = {each.name: each for each in (ConfluentMember, KafkaPythonMember, AiokafkaMember)}
