"""The log cleaner of a broker: it compacts the dirtiest log, one after the other.

``compaction`` decides which logs are due, and ``cleaning`` runs one round. The cleaner chooses the log, throttles the
round, and remembers the outcome for status reports. A log that fails is left out; the cleaner goes on with the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import TopicPartition
from barnabas.observe.log import logger
from barnabas.storage.cleaner_settings import CleanerSettings
from barnabas.storage.cleaner_status import CleanerStatus, CleanerTotals, Round
from barnabas.storage.cleaning import Cleaning, CleaningAborted, Uncleanable
from barnabas.storage.compaction import Cleanable, LogFacts, cleanable, dirtiest, is_due
from barnabas.storage.index import CorruptIndex
from barnabas.storage.log import PartitionLog
from barnabas.storage.store import LogStore
from barnabas.world.disk import DiskFailure, DiskFull
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers
from barnabas.world.world import World

log = logger("cleaner")

THROTTLE_MS_MIN: Final = 10  # shorter pauses are added to the next one


class Cleaner:
    def __init__(
        self, world: World, timers: Timers, store: LogStore, *, settings: Callable[[], CleanerSettings]
    ) -> None:
        self._world = world
        self._timers = timers
        self._store = store
        self._settings = settings
        self._tasks = Tasks()
        self._is_stopping = False
        self._wake: asyncio.Future[None] | None = None
        self._paid_until_ns = 0  # time up to which the throttle has used its rate
        self._failed: dict[TopicPartition, tuple[PartitionLog, str]] = {}
        self._last: dict[TopicPartition, Round] = {}
        self.under_way: Round | None = None
        self.totals = CleanerTotals()

    # --- its life -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._tasks.retry("cleaner", self._run, self._timers)

    async def stop(self) -> None:
        """Abort the current round at its next slice, and return when it has ended."""
        self._is_stopping = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        await self._tasks.done()

    async def _run(self) -> None:
        while not self._is_stopping:
            settings = self._settings()
            if not (settings.is_enabled and await self.clean_dirtiest()):
                await self._pause(settings.backoff_ms)

    async def _pause(self, delay_ms: int) -> None:
        if self._is_stopping:
            return
        self._wake = asyncio.get_running_loop().create_future()
        woken = self._wake
        timer = self._timers.after(delay_ms, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()
            self._wake = None

    # --- choosing -------------------------------------------------------------------------------------------------

    async def clean_dirtiest(self) -> bool:
        """Clean the log that needs it most; False if no log is due, or if the round was not finished."""
        now_ms = self._world.clock.wall_ms()
        candidates = []
        for partition, found in list(self._store.logs.items()):
            if self._store.futures.get(partition) is not None:
                continue  # the log is being moved to another directory
            if found.settings.is_compacted and not found.is_over and self._failure_of(partition, found) is None:
                try:
                    candidates.append((found, self._cleanable(found, now_ms), found.settings))
                except Exception as error:  # noqa: BLE001  # no error of one log may stop the cleaner
                    self._give_up(found, error)
                await asyncio.sleep(0)
        chosen = dirtiest(candidates)
        for memory in (self._last, self._failed):
            for partition in [each for each in memory if each not in self._store.logs]:
                del memory[partition]
        return chosen is not None and await self._clean(*chosen)

    def _cleanable(self, target: PartitionLog, now_ms: int) -> Cleanable:
        segments = target.segments.all()
        found = cleanable(
            LogFacts(
                segments,
                target.log_start_offset,
                target.end_offset,
                target.last_stable_offset,
                target.cleaned_offset,
                target.settings,
            ),
            now_ms=now_ms,
        )
        for segment in segments[:-1]:
            if segment.file is not None:
                target.open_segments.used(segment)
        return found

    def _failure_of(self, partition: TopicPartition, target: PartitionLog) -> str | None:
        failed = self._failed.get(partition)
        if failed is not None and failed[0] is not target:
            # The log was deleted and created again.
            del self._failed[partition]
            return None
        return failed[1] if failed is not None else None

    @property
    def rounds_count(self) -> int:
        return self.totals.rounds

    @property
    def failed(self) -> Mapping[TopicPartition, str]:
        """The reason for each log that is not cleaned any more."""
        return {partition: reason for partition, (_, reason) in self._failed.items()}

    def status(self, partition: TopicPartition) -> CleanerStatus | None:
        """The state of the cleaner for a log; None if there is no such log."""
        target = self._store.get(partition)
        if target is None:
            return None
        last, under_way = self._last.get(partition), self.under_way
        if not target.settings.is_compacted:
            return CleanerStatus("not compacted", "cleanup.policy does not name compact", None, None, last)
        failure = self._failure_of(partition, target)
        try:
            found = self._cleanable(target, self._world.clock.wall_ms())
        except (CorruptBatch, CorruptIndex, DiskFailure) as error:
            return CleanerStatus("failed", failure or str(error), None, None, last)
        if not self._settings().is_enabled:
            state, reason = "disabled", "log.cleaner.enable is false"
        elif under_way is not None and under_way.partition == partition:
            return CleanerStatus("cleaning", f"the cleaner {under_way.step}", found, under_way, last)
        elif failure is not None:
            state, reason = "failed", failure
        elif is_due(found, target.settings):
            state, reason = "due", "it waits for its turn"
        elif found.dirty_bytes:
            state = "waiting"
            reason = f"{found.ratio:.0%} is dirty, more than {target.settings.min_cleanable_dirty_ratio:.0%} must be"
        else:
            state, reason = (
                "clean",
                f"nothing below offset {found.end_offset} is dirty; from there, {found.bound.value}",
            )
        return CleanerStatus(state, reason, found, None, last)

    # --- one round ------------------------------------------------------------------------------------------------

    async def _clean(self, target: PartitionLog, found: Cleanable) -> bool:
        clock = self._world.clock
        round_ = Round(target.partition, found.first_dirty_offset, found.end_offset, clock.wall_ms())
        self.under_way = round_
        try:
            cleaning = Cleaning(
                self._world, target, round_, is_stopping=lambda: self._is_stopping, throttle=self._throttle
            )
            await cleaning.run(self._settings().dedupe_buffer_bytes)
            await self._store.checkpoint_cleaned(target)
        except CleaningAborted:
            return False
        except DiskFull as error:
            log.warning("no room to clean", partition=target.partition, reason=error)
            return False
        except Exception as error:  # noqa: BLE001  # no error of one log may stop the cleaner
            self._give_up(target, error)
            return False
        finally:
            self.under_way = None
        round_.ended_ms, round_.step = clock.wall_ms(), "is done"
        self._last[target.partition] = round_
        self.totals.add(round_)
        return True

    def _give_up(self, target: PartitionLog, error: Exception) -> None:
        log.error("log cannot be cleaned", partition=target.partition, reason=error)
        if isinstance(error, DiskFailure):
            target.fail(error)
        elif not isinstance(error, Uncleanable):
            self._store.faults.damaged(target, "compaction", error)
        self._failed[target.partition] = target, str(error)

    async def _throttle(self, size_bytes: int) -> None:
        """Wait until log.cleaner.io.max.bytes.per.second allows more I/O after this many bytes."""
        rate = self._settings().io_bytes_per_second_max
        now_ns = self._world.clock.monotonic_ns()
        self._paid_until_ns = max(now_ns, self._paid_until_ns) + int(1e9 * size_bytes / rate)
        delay_ms = (self._paid_until_ns - now_ns) // 1_000_000
        if delay_ms >= THROTTLE_MS_MIN:
            await self._pause(delay_ms)
