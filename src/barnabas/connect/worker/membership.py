"""Leadership: the worker that owns the config topic's only partition in the consumer group leads.

There is no protocol of our own. Each member's client id holds the address of its REST API, so that the others find the
leader in the description of the group. The owner keeps the partition when workers join (cooperative-sticky); only a
loss that lasts ends leadership.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from barnabas.client.admin.client import Admin
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger

TICK_MS: Final = 200
LOST_SECONDS: Final = 2.0  # without the partition, after which leadership is over
CLIENT_ID: Final = "connect "
RETRY_SECONDS: Final = 1.0

_log: Final = logger("connect")


class Membership:
    """A worker's place in the group. ``on_change`` is told whether this worker leads."""

    def __init__(
        self,
        client: Mapping[str, str],
        group: str,
        topic: str,
        url: str,
        timeout_ms: int,
        on_change: Callable[[bool], None],
    ) -> None:
        told = {
            **client,
            "client.id": CLIENT_ID + url,
            "group.id": group,
            "session.timeout.ms": str(timeout_ms),
            "heartbeat.interval.ms": str(max(200, timeout_ms // 5)),
            "enable.auto.commit": "false",
            "auto.offset.reset": "latest",
            # A worker that joins must not take the partition, and with it Spark, from the leader.
            "partition.assignment.strategy": "cooperative-sticky",
        }
        self._settings = ConsumerSettings.of(told)
        self._group = group
        self._topic = topic
        self._on_change = on_change
        self._running: asyncio.Task[None] | None = None
        self.is_leader = False

    async def start(self) -> None:
        """Join the group."""
        self._running = asyncio.create_task(self._run(), name="connect-membership")

    async def _run(self) -> None:
        while True:
            try:
                async with Consumer(self._settings) as consumer:
                    await consumer.subscribe(self._topic)
                    await self._follow(consumer)
            except BarnabasError as error:
                _log.warning("group cannot be joined", group=self._group, error=error)
                self._set(False)
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, consumer: Consumer[bytes, bytes]) -> None:
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        place = TopicPartition(self._topic, 0)
        while True:
            await consumer.poll(timeout_ms=TICK_MS)
            if place in consumer.assignment:
                lost_at = None
                self._set(True)
            elif self.is_leader:
                lost_at = lost_at or loop.time()
                if loop.time() - lost_at > LOST_SECONDS:
                    self._set(False)

    def _set(self, is_leader: bool) -> None:
        if is_leader != self.is_leader:
            self.is_leader = is_leader
            self._on_change(is_leader)

    async def leader_url(self, cluster: Cluster) -> str | None:
        """Return the address of the leader's REST API, if there is a leader."""
        try:
            group = await Admin(cluster=cluster).describe_group(self._group)
        except BarnabasError:
            return None
        place = TopicPartition(self._topic, 0)
        for member in group.members:
            if place in member.partitions and member.client_id.startswith(CLIENT_ID):
                return member.client_id.removeprefix(CLIENT_ID)
        return None

    async def stop(self) -> None:
        """Leave the group."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
