"""Delivers the markers of decided transactions, and retries until every partition has its marker.

The coordinator's shard decides, and is notified when all markers are written; the sender sends them. There is never
more than one delivery for a transactional id: a late marker could end the next transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.coordinator.transactions.markers import Marker, MarkerSender
from barnabas.coordinator.transactions.requests import MarkersWritten, WriteMarkers
from barnabas.model import errors
from barnabas.observe.log import logger
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

log = logger("transactions")

RETRY_MS_MIN: Final = 10
RETRY_MS_MAX: Final = 1000
# Somebody newer has spoken to the partition: it is no longer ours to end anything there.
FENCED: Final = (errors.INVALID_PRODUCER_EPOCH, errors.TRANSACTION_COORDINATOR_FENCED)
# Done, or the partition is gone and nobody will read what it held.
SETTLED: Final = (errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION)


class MarkerDelivery:
    def __init__(
        self,
        sender: MarkerSender,
        timers: Timers,
        *,
        coordinator_epoch: Callable[[int], int],
        report: Callable[[int, MarkersWritten], None],
    ) -> None:
        """``report(index, …)`` tells the shard that a transaction's markers are written."""
        self._sender = sender
        self._timers = timers
        self._coordinator_epoch = coordinator_epoch
        self._report = report
        self._tasks = Tasks()
        self._deliveries: dict[tuple[int, str], asyncio.Task[None]] = {}  # by shard and transactional id

    def __len__(self) -> int:
        return len(self._deliveries)

    def start(self, index: int, markers: WriteMarkers) -> None:
        """Begin, in place of whatever was under way for the same id."""
        key = (index, markers.transactional_id)
        before = self._deliveries.pop(key, None)
        if before is not None:
            before.cancel()
        name = f"markers:{markers.transactional_id}"
        work = self._tasks.until_done(name, lambda: self._deliver(index, markers), self._timers)
        delivery = self._tasks.start(work, name)
        self._deliveries[key] = delivery
        delivery.add_done_callback(lambda done: self._forget(key, done))

    async def until_written(self, index: int, transactional_id: str, *, timeout_ms: int) -> None:
        """Wait until the markers of an id are written, if they are under way here; else, and at most, for a time."""
        over = asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            if not over.done():
                over.set_result(None)

        timer = self._timers.after(timeout_ms, end)
        task = self._deliveries.get((index, transactional_id))
        if task is not None:
            task.add_done_callback(end)
        try:
            await over
        finally:
            timer.cancel()
            if task is not None:
                task.remove_done_callback(end)

    async def stop(self) -> None:
        await self._tasks.stop()

    def _forget(self, key: tuple[int, str], task: asyncio.Task[None]) -> None:
        if self._deliveries.get(key) is task:
            del self._deliveries[key]

    async def _deliver(self, index: int, markers: WriteMarkers) -> None:
        marker = Marker(markers.producer, markers.is_commit, self._coordinator_epoch(index), markers.version)
        left = list(markers.partitions)
        delay_ms = RETRY_MS_MIN
        while True:
            results = await self._sender.send(marker, left)
            for partition, error in sorted(results.items()):
                if error in FENCED:
                    log.info("markers are given up", transactional_id=markers.transactional_id, partition=partition)
                    return
            left = [partition for partition in left if results.get(partition) not in SETTLED]
            if not left:
                break
            await self._timers.sleep(delay_ms)
            delay_ms = min(2 * delay_ms, RETRY_MS_MAX)
        written = MarkersWritten(transactional_id=markers.transactional_id, producer=markers.producer)
        self._report(index, written)
