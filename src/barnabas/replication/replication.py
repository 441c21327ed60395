"""Replication of this broker's partitions: connects them with the other brokers and the controller.

Leaders learn here which brokers are alive, and their ISR proposals are sent; followers fetch over the links given here.
The ISRs are checked periodically for followers that have fallen behind. The node creates one Replication before it
applies the first metadata image.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.metadata.configs_image import ResourceType
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.replication.fetcher import Sender
from barnabas.replication.fetchers import Fetchers
from barnabas.replication.isr import Proposal
from barnabas.replication.isr_changes import AskController, IsrChanges
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.replication.settings import ReplicationSettings
from barnabas.replication.throttle import Throttle
from barnabas.world.clock import Clock
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timer, Timers

PARTITIONS_PER_TURN_MAX: Final = 200  # looked at before the loop serves others


class Replication:
    def __init__(
        self,
        replicas: Replicas,
        *,
        clock: Clock,
        timers: Timers,
        links: Sender,
        ask: AskController,
        broker_epoch: Callable[[], int],
        settings: Callable[[], ReplicationSettings],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.broker_id = replicas.broker_id
        self.links = links
        self.timers = timers
        self.throttle = Throttle()
        self.broker_epoch = broker_epoch
        self.now_ms = clock.monotonic_ms
        self.failed = on_failure
        self._replicas = replicas
        self._settings = settings
        self.isr_changes = IsrChanges(broker_id=self.broker_id, broker_epoch=broker_epoch, ask=ask, timers=timers)
        self.fetchers = Fetchers(self)
        replicas.on_failure = on_failure
        replicas.connect(self, self.fetchers)
        self._forget_images = replicas.on_image_in_force(self._on_image)
        self._timer: Timer | None = None
        self._is_stopped = False
        self._tasks = Tasks()

    def start(self) -> None:
        """Check for followers that have fallen behind, twice per replica.lag.time.max.ms."""
        self._timer = self.timers.after(max(1, self.lag_ms_max // 2), self._check)

    async def stop(self) -> None:
        """Fetch nothing and ask for nothing any more. The partitions stay as they are."""
        self._forget_images()
        if self._timer is not None:
            self._timer.cancel()
        self._is_stopped = True
        await self._tasks.stop()
        await self.fetchers.stop()
        await self.isr_changes.stop()

    # --- what leaders and fetchers ask for ------------------------------------------------------------------------

    @property
    def settings(self) -> ReplicationSettings:
        return self._settings()

    @property
    def lag_ms_max(self) -> int:
        return self._settings().lag_ms_max

    def active_epoch(self, broker_id: int) -> int | None:
        broker = self._replicas.latest.brokers.get(broker_id)
        return broker.epoch if broker is not None and broker.is_active else None

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        self.isr_changes.propose(partition, proposal)

    # --- now and then ---------------------------------------------------------------------------------------------

    def _on_image(self, changes: MetadataChanges, image: ClusterImage) -> None:
        if any(resource.type == ResourceType.BROKER for resource in changes.changed_configs):
            self.fetchers.resize()
        if changes.changed_brokers:
            for partition in self._replicas:
                partition.check_outsiders()

    def _check(self) -> None:
        self._tasks.start(self._check_all(), "isr-check")

    async def _check_all(self) -> None:
        try:
            for number, partition in enumerate(list(self._replicas)):
                if number and number % PARTITIONS_PER_TURN_MAX == 0:
                    await asyncio.sleep(0)
                partition.check_followers(self.now_ms())
        finally:
            if not self._is_stopped:
                self.start()
