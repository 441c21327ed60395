"""A topic as a log of state: read from the beginning, followed for ever, and written to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from barnabas.client.admin.client import Admin
from barnabas.client.admin.configs import Resource, ResourceKind
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.offsets import LATEST_TIMESTAMP
from barnabas.client.producer import Producer
from barnabas.client.record import ConsumerRecord
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.connect.errors import ConnectError
from barnabas.connect.worker.store import Write
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger

POLL_MS: Final = 500
RETRY_SECONDS: Final = 1.0
READ_SECONDS_MAX: Final = 60.0
ISOLATION: Final = "read_committed"

_log: Final = logger("connect")
Apply = Callable[[ConsumerRecord[bytes, bytes]], None]


async def ensure_topic(admin: Admin, name: str, partitions: int, replicas: int) -> None:
    """Create a compacted topic if it is not there; raise if it is there and not compacted."""
    configs = {"cleanup.policy": "compact"}
    try:
        await admin.create_topic(NewTopic(name, partitions, replicas, configs))
    except ApiError as error:
        if error.error is not errors.TOPIC_ALREADY_EXISTS:
            raise
    resource = Resource(ResourceKind.TOPIC, name)
    described = (await admin.describe_configs([resource]))[resource]
    if isinstance(described, ApiError):
        raise described
    policy = described["cleanup.policy"].value
    if "compact" not in (policy or ""):
        raise ConnectError(f"topic {name} has cleanup.policy={policy}: its records would expire; set it to compact")


class TopicLog:
    """All partitions of a topic. ``apply`` is called for each record, in order within a partition."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings, topic: str, apply: Apply) -> None:
        self.topic = topic
        self._cluster = cluster
        self._consumer: Consumer[bytes, bytes] = Consumer(settings, cluster=cluster)
        self._apply = apply
        self._partitions: list[TopicPartition] = []
        self._positions: dict[TopicPartition, int] = {}
        self._moved = asyncio.Condition()
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read everything that is there, then go on reading."""
        found = await self._cluster.retrying(lambda: self._cluster.look_up([self.topic]))
        self._partitions = [TopicPartition(self.topic, each.partition) for each in found[self.topic].partitions]
        await self._consumer.assign(self._partitions)
        self._following = asyncio.create_task(self._follow(), name=f"connect-{self.topic}")
        await self.catch_up()

    async def _follow(self) -> None:
        while True:
            try:
                records = await self._consumer.poll(timeout_ms=POLL_MS)
            except BarnabasError as error:
                _log.warning("topic cannot be read", topic=self.topic, error=error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for record in records:
                self._apply(record)
            self._positions = {place: self._consumer.position(place) for place in self._partitions}
            async with self._moved:
                self._moved.notify_all()

    async def catch_up(self) -> None:
        """Wait until everything that is in the topic now has been applied."""
        admin = Admin(cluster=self._cluster)
        wanted = dict.fromkeys(self._partitions, LATEST_TIMESTAMP)
        listed = await admin.list_offsets(wanted, isolation_level=ISOLATION)
        await self.wait_for({place: entry.offset for place, entry in listed.items()})

    async def wait_for(self, ends: Mapping[TopicPartition, int]) -> None:
        """Wait until everything before these offsets has been applied."""
        async with asyncio.timeout(READ_SECONDS_MAX), self._moved:
            await self._moved.wait_for(lambda: all(self._positions.get(place, -1) >= ends[place] for place in ends))

    async def write(self, producer: Producer[bytes, bytes], records: Iterable[Write]) -> dict[TopicPartition, int]:
        """Write records, wait until they are acknowledged, and return the offset after the last one by partition."""
        deliveries = [await producer.send_soon(self.topic, value, key=key) for key, value in records]
        await producer.flush()
        ends: dict[TopicPartition, int] = {}
        for delivery in deliveries:
            where = await delivery
            place = TopicPartition(self.topic, where.partition)
            ends[place] = max(ends.get(place, 0), where.offset + 1)
        return ends

    async def stop(self) -> None:
        """Stop reading."""
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
        await self._consumer.close(commit=False)
