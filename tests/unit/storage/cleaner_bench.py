"""A store with a cleaner in virtual time, whose workers a test may interrupt. Shared by the tests of the cleaner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from barnabas.model.ids import TopicPartition
from barnabas.storage.cleaner import Cleaner
from barnabas.storage.cleaner_settings import CleanerSettings
from barnabas.storage.cleaner_status import CleanerStatus
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Rules, validate
from barnabas.testing.loop import SimulatedLoop
from barnabas.testing.world import SimulatedClock, simulated_world
from barnabas.wire.records import decode_all, encode_batch
from barnabas.world.memory import MemoryDisk
from barnabas.world.timers import Timers
from barnabas.world.world import World

T = TypeVar("T")
KEYED, OTHER = TopicPartition("keyed", 0), TopicPartition("other", 0)
COMPACTED = TopicSettings(
    cleanup_policy=("compact",),
    segment_bytes=700,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.1,
    file_delete_delay_ms=0,
)


class HookedWorkers:
    """Work is done on the loop; between two pieces of it a test may interfere."""

    def __init__(self) -> None:
        self.hook: Callable[[], Awaitable[object] | None] = lambda: None
        self.calls_before_hook = -1

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        await asyncio.sleep(0)
        if self.calls_before_hook == 0:
            waiting = self.hook()
            if waiting is not None:
                await waiting
        self.calls_before_hook -= 1
        return work(*arguments)

    async def close(self) -> None:
        """There is nothing to end."""


class Bench:
    """A store with a cleaner in virtual time."""

    def __init__(self, loop: SimulatedLoop) -> None:
        world = simulated_world(loop, 1)
        assert isinstance(world.disk, MemoryDisk)
        assert isinstance(world.clock, SimulatedClock)
        self.loop, self.disk, self.clock = loop, world.disk, world.clock
        self.workers = HookedWorkers()
        self.world = World(clock=world.clock, disk=world.disk, entropy=world.entropy, workers=self.workers)
        self.settings = CleanerSettings(dedupe_buffer_bytes=1 << 16, backoff_ms=100)
        self.disk.make_directory("/data")

    async def start(self) -> None:
        self.timers = Timers(self.clock)
        self.store = await LogStore.open(
            self.world,
            self.timers,
            ["/data"],
            node_id=1,
            cluster_id="c",
            defaults=COMPACTED,
            settings_of=lambda topic: COMPACTED,
        )
        self.cleaner = Cleaner(self.world, self.timers, self.store, settings=lambda: self.settings)

    async def restart(self) -> None:
        await self.store.close(clean=True)
        self.timers.close()
        await self.start()

    async def log(self, partition: TopicPartition = KEYED, settings: TopicSettings = COMPACTED) -> PartitionLog:
        return await self.store.create(partition, None, settings)

    def append(self, log: PartitionLog, *keys: bytes, **facts: Any) -> None:
        for key in keys:
            now_ms = self.clock.wall_ms()
            value = b"%d" % log.end_offset
            batch = encode_batch([(now_ms, key, value.ljust(60), ())], **facts)
            log.append_as_leader(validate(batch, Rules.of(log.settings), now_ms=now_ms), leader_epoch=0, now_ms=now_ms)
        log.advance_high_watermark(log.end_offset)

    def fill(self, log: PartitionLog, count: int = 30, keys: int = 4) -> None:
        self.append(log, *(b"%d" % (number % keys) for number in range(count)))
        log.roll(self.clock.wall_ms())

    def offsets(self, log: PartitionLog) -> list[int]:
        found: list[int] = []
        at = log.log_start_offset
        while at < log.end_offset:
            read = log.read(at, size_bytes_max=1 << 20, end_offset_max=log.end_offset, at_least_one=True)
            if read.records is None:
                break
            records = decode_all(read.records.file.read(read.records.position, read.records.size_bytes))
            found += [record.offset for record in records if record.offset >= at]
            at = read.next_offset_bound
        return found

    def leftovers(self) -> list[str]:
        return [name for name in self.disk.list("/data/keyed-0") if name.endswith((".cleaned", ".swap"))]

    def status(self, partition: TopicPartition = KEYED) -> CleanerStatus:
        found = self.cleaner.status(partition)
        assert found is not None
        return found

    def checkpoint(self) -> str:
        return self.disk.read_all("/data/cleaner-offset-checkpoint", size_bytes_max=1000).decode()

    def interfere(self, hook: Callable[[], Awaitable[object] | None], *, after: int) -> None:
        self.workers.hook, self.workers.calls_before_hook = hook, after


def run(scene: Callable[[Bench], Awaitable[None]]) -> None:
    loop = SimulatedLoop(1)

    async def main() -> None:
        bench = Bench(loop)
        await bench.start()
        try:
            await scene(bench)
        finally:
            await bench.store.close(clean=False)
            bench.timers.close()

    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
