"""Our own consumer with the face of the other members: in classic groups and in those of the consumer protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from consumer_members import ConsumerMember
from group_members import POLL_SECONDS, Member

from barnabas import Consumer, ConsumerSettings, RebalanceListener, TopicPartition
from barnabas.client.errors import CommitFailed


class _Listener(RebalanceListener):
    def __init__(self, gain: Any, lose: Any) -> None:
        self._gain, self._lose = gain, lose

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._gain(frozenset((place.topic, place.partition) for place in partitions))

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._lose(frozenset((place.topic, place.partition) for place in partitions))


async def _read(settings: ConsumerSettings, topics: Sequence[str], member: Any, is_over: threading.Event) -> None:
    async with Consumer(settings) as consumer:
        await consumer.subscribe(topics, listener=_Listener(member._gain, member._lose))
        while not is_over.is_set():
            records = await consumer.poll(100, timeout_ms=int(POLL_SECONDS * 1000))
            member._note(records)
            if records:
                try:
                    await consumer.commit()
                except CommitFailed as error:
                    member.failed_commits.append(error)


class OurMember(Member):
    """In a classic group."""

    name = "barnabas"

    def _run(self) -> None:
        self.failed_commits: list[CommitFailed] = []
        settings = ConsumerSettings(
            bootstrap_servers=(self.bootstrap,),
            group_id=self.group,
            group_instance_id=self.instance,
            session_timeout_ms=self.session_ms,
            heartbeat_interval_ms=self.session_ms // 5,
            partition_assignment_strategy=(self.assignor,),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=1000,
        )
        asyncio.run(_read(settings, [self.topic], self, self._is_stopping))

    def _gain(self, partitions: frozenset[tuple[str, int]]) -> None:
        self.rebalances += 1
        self.assigned |= frozenset(index for _, index in partitions)

    def _lose(self, partitions: frozenset[tuple[str, int]]) -> None:
        self.assigned -= frozenset(index for _, index in partitions)

    def _note(self, records: Sequence[Any]) -> None:
        self.seen += [(record.partition, record.offset, record.value or b"") for record in records]


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
        asyncio.run(_read(settings, self.topics, self, self._is_stopping))

    def _note(self, records: Sequence[Any]) -> None:
        self.seen += [(record.topic, record.partition, record.offset) for record in records]
