"""Samples a cluster while its pages are looked at: records of each topic, lag of each group.

The more partitions there are, the less often it looks. It stops when no page has asked for some minutes, and samples
are kept in ``history``.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from barnabas.client.group.lag import lags
from barnabas.client.offsets import LATEST_TIMESTAMP, list_offsets
from barnabas.console.history import History
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin

_log: Final = logger("console")

SECONDS: Final = 5.0
SECONDS_MAX: Final = 60.0
PARTITIONS_PER_SECOND: Final = 400  # looked at on average, of topics and of groups
WATCHED_SECONDS: Final = 600.0  # after the last page asked
GROUPS_MAX: Final = 1000


class Sampler:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self.records = History()  # end offsets of each topic, all partitions together
        self.lag = History()  # records behind, by group
        self.lag_ms = History()  # time behind, by group
        self._running: asyncio.Task[None] | None = None
        self._watched_at = 0.0

    def watch(self) -> None:
        """A page wants history: sample for some minutes from now on."""
        self._watched_at = time.monotonic()
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
            self._running = None

    async def _run(self) -> None:
        while time.monotonic() - self._watched_at < WATCHED_SECONDS:
            looked = 0
            began = time.monotonic()
            try:
                looked = await self.sample(int(time.time() * 1000))
            except BarnabasError as error:
                _log.debug("sample_failed", reason=error)
            pause = max(SECONDS, looked / PARTITIONS_PER_SECOND, 10 * (time.monotonic() - began))
            await asyncio.sleep(min(pause, SECONDS_MAX))

    async def sample(self, now_ms: int) -> int:
        """Look once; returns the number of partitions that were looked at."""
        cluster = self._admin.cluster
        topics = await cluster.all_topics()
        places = [TopicPartition(topic.name, index) for topic in topics for index in topic.led_partitions]
        ends: dict[str, float] = {}
        if places:
            for place, listed in (
                await list_offsets(cluster, dict.fromkeys(places, LATEST_TIMESTAMP), timeout_ms=5000)
            ).items():
                ends[place.topic] = ends.get(place.topic, 0.0) + listed.offset
        self.records.add(now_ms, ends)
        return len(places) + await self._sample_groups(now_ms)

    async def _sample_groups(self, now_ms: int) -> int:
        looked = 0
        behind: dict[str, float] = {}
        behind_ms: dict[str, float] = {}
        for group in (await self._admin.list_groups())[:GROUPS_MAX]:
            committed = await self._admin.group_offsets(group.group_id)
            found = await lags(self._admin.cluster, {place: entry.offset for place, entry in committed.items()})
            looked += len(found)
            behind[group.group_id] = float(sum(lag.records for lag in found.values()))
            known = [lag.behind_ms for lag in found.values() if lag.behind_ms is not None]
            behind_ms[group.group_id] = float(max(known, default=0))
        self.lag.add(now_ms, behind)
        self.lag_ms.add(now_ms, behind_ms)
        return looked
