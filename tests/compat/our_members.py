"""Our own consumer with the face of the other members: in classic groups and in those of the consumer protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from consumer_members import ConsumerMember
from group_members import HEARTBEAT_MS, POLL_SECONDS, Member

from barnabas import Consumer, ConsumerSettings, RebalanceListener, TopicPartition
from barnabas.client.errors import CommitFailed


class _Listener(RebalanceListener):
    def __init__(self, member: Any, consumer: Consumer) -> None:
        self._member, self._consumer = member, consumer

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._member._was_given(partitions)

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._member._commit(self._consumer)
        self._member._gave_up(partitions)


async def _consume(settings: ConsumerSettings, topics: Sequence[str], member: Any, is_over: threading.Event) -> None:
    async with Consumer(settings) as consumer:
        await consumer.subscribe(topics, listener=_Listener(member, consumer))
        while not is_over.is_set():
            records = await consumer.poll(100, timeout_ms=int(POLL_SECONDS * 1000))
            if records:
                member._saw(records)
                await member._commit(consumer)


class OurMember(Member):
    """In a group of either protocol, with one topic."""

    name = "barnabas"

    def _run(self) -> None:
        self.failed_commits: list[CommitFailed] = []
        classic = {
            "session_timeout_ms": self.session_ms,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "partition_assignment_strategy": (self.assignor,),
        }
        settings = ConsumerSettings(
            bootstrap_servers=(self.bootstrap,),
            group_id=self.group,
            group_instance_id=self.instance,
            group_protocol=self.protocol,  # type: ignore[arg-type]
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=1000,
            **(classic if self.protocol == "classic" else {}),  # type: ignore[arg-type]
        )
        asyncio.run(_consume(settings, [self.topic], self, self._is_stopping))

    @property
    def is_incremental(self) -> bool:
        return True  # our listener hears what is new with every assignor

    def _was_given(self, partitions: Sequence[TopicPartition]) -> None:
        self._gain([place.partition for place in partitions])

    def _gave_up(self, partitions: Sequence[TopicPartition]) -> None:
        self._lose([place.partition for place in partitions])

    def _saw(self, records: Sequence[Any]) -> None:
        self._read(records)

    async def _commit(self, consumer: Consumer) -> None:
        offsets = dict(self._uncommitted)
        try:
            if offsets:
                await consumer.commit({TopicPartition(self.topic, index): offset for index, offset in offsets.items()})
        except CommitFailed as error:
            self.failed_commits.append(error)
            return
        self._committed(offsets)


class OurConsumerMember(ConsumerMember):
    """In a group of the consumer protocol."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_stopping = threading.Event()
        self.failed_commits: list[CommitFailed] = []

    def _end(self) -> None:
        self._is_stopping.set()

    def _run(self) -> None:
        settings = ConsumerSettings(
            bootstrap_servers=(self.bootstrap,),
            group_id=self.group,
            group_instance_id=self.instance,
            group_protocol="consumer",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=500,
        )
        asyncio.run(_consume(settings, self.topics, self, self._is_stopping))

    def _was_given(self, partitions: Sequence[TopicPartition]) -> None:
        self._gain(frozenset((place.topic, place.partition) for place in partitions))

    def _gave_up(self, partitions: Sequence[TopicPartition]) -> None:
        self._lose(frozenset((place.topic, place.partition) for place in partitions))

    def _saw(self, records: Sequence[Any]) -> None:
        self.seen += [(record.topic, record.partition, record.offset) for record in records]

    async def _commit(self, consumer: Consumer) -> None:
        try:
            await consumer.commit()
        except CommitFailed as error:
            self.failed_commits.append(error)
