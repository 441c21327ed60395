"""Elects the leader: the member of a consumer group that owns the one partition of ``_schemas``.

The leader stores its address as metadata of the group's committed offset. Only a member of the current generation can
commit, so the address is that of the newest leader; followers read it to know where to forward writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from barnabas.client.consumer import Consumer, RebalanceListener
from barnabas.client.group.commits import OffsetAndMetadata
from barnabas.client.settings.client import Settings
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger
from barnabas.registry.log import PLACE, RETRY_SECONDS, client_settings
from barnabas.registry.records import TOPIC

_log: Final = logger("registry")
SESSION_MS: Final = 6_000
HEARTBEAT_MS: Final = 1_000
POLL_MS: Final = 250
ADDRESS_SECONDS: Final = 1.0  # for which a leader's address is believed


class Election(RebalanceListener):
    """Calls ``on_elected`` when this process becomes the leader and ``on_deposed`` when it is not any more."""

    def __init__(
        self,
        settings: Settings,
        *,
        group: str,
        address: str,
        on_elected: Callable[[], Awaitable[None]],
        on_deposed: Callable[[], Awaitable[None]],
        session_ms: int = SESSION_MS,
    ) -> None:
        self._settings = client_settings(
            ConsumerSettings,
            settings,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            partition_assignment_strategy=("cooperative-sticky",),  # a member that joins does not take the lead
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS, session_ms // 3),
        )
        self.address = address
        self._on_elected, self._on_deposed = on_elected, on_deposed
        self._owns = False
        self._leads = False
        self._consumer: Consumer | None = None
        self._running: asyncio.Task[None] | None = None
        self._known: tuple[str, float] = "", 0.0

    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._run(), name="registry-election")

    async def close(self) -> None:
        """Leave the group at once, so that another member takes over without a timeout."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    @property
    def leads(self) -> bool:
        return self._leads

    async def leader(self, *, fresh: bool = False) -> str:
        """The address of the leader; empty if none is known."""
        now = asyncio.get_running_loop().time()
        if fresh or now >= self._known[1]:
            consumer = self._consumer
            if consumer is None:
                return ""
            stored = (await consumer.committed([PLACE]))[PLACE]
            self._known = (stored.metadata if stored is not None else ""), now + ADDRESS_SECONDS
        return self._known[0]

    def distrust(self) -> None:
        """Take part in the election anew: this process could not write."""
        self._leads = False

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        if PLACE in partitions:
            assert self._consumer is not None
            self._consumer.pause(PLACE)
            self._owns = True

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        if PLACE in partitions:
            await self._step_down()

    async def _step_down(self) -> None:
        self._owns = False
        if self._leads:
            self._leads = False
            _log.info("leadership_lost", address=self.address)
        await self._on_deposed()

    async def _run(self) -> None:
        while True:
            try:
                async with Consumer(self._settings) as consumer:
                    self._consumer = consumer
                    await consumer.subscribe(TOPIC, listener=self)
                    while True:
                        await consumer.poll(timeout_ms=POLL_MS)
                        if self._owns and not self._leads:
                            await self._take_over(consumer)
            except BarnabasError as error:
                _log.warning("election_failed", reason=error)
            finally:
                self._consumer = None
                await self._step_down()
            await asyncio.sleep(RETRY_SECONDS)

    async def _take_over(self, consumer: Consumer) -> None:
        """Become able to write first, then be found by followers."""
        try:
            await self._on_elected()
            await consumer.commit({PLACE: OffsetAndMetadata(0, self.address)})
        except BarnabasError as error:  # the next poll tries again, or says that the group has moved on
            _log.warning("leadership_not_taken", reason=error)
            return
        if self._owns:
            self._leads = True
            self._known = self.address, asyncio.get_running_loop().time() + ADDRESS_SECONDS
            _log.info("leadership_taken", address=self.address)
