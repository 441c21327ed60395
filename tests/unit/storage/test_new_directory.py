"""A partition that was just made: once something in it is synced, no power cut takes it away with its directory."""

from __future__ import annotations

import asyncio
from copy import copy
from random import Random

import pytest

from barnabas.model.ids import TopicPartition, Uuid
from barnabas.storage.progress import OnProgress, RecoveryProgress
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Rules, validate
from barnabas.testing.world import InlineWorkers, SeededEntropy
from barnabas.wire.records import encode_batch
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import RealClock
from barnabas.world.timers import Timers
from barnabas.world.world import World

PARTITION, TOPIC_ID = TopicPartition("t", 0), Uuid(bytes(range(16)))


def world_of(disk: MemoryDisk) -> World:
    chance = Random(3)
    return World(clock=RealClock(), disk=disk, entropy=SeededEntropy(chance), workers=InlineWorkers(chance))


async def opened(world: World, on_progress: OnProgress | None = None) -> LogStore:
    return await LogStore.open(
        world,
        Timers(world.clock),
        ["/data"],
        node_id=1,
        cluster_id="c",
        defaults=TopicSettings(),
        settings_of=lambda topic: TopicSettings(),
        on_progress=on_progress,
    )


@pytest.mark.parametrize("seed", range(30))
def test_a_crash_after_the_first_sync_loses_neither_directory_nor_records(seed: int) -> None:
    async def main() -> None:
        disk = MemoryDisk(RealClock())
        disk.make_directory("/data")
        disk.sync_all()
        world = world_of(disk)
        store = await opened(world)
        log = await store.create(PARTITION, TOPIC_ID)
        now_ms = world.clock.wall_ms()
        batch = encode_batch([(now_ms, b"k", b"kept", ())])
        log.append_as_leader(validate(batch, Rules.of(log.settings), now_ms=now_ms), leader_epoch=0, now_ms=now_ms)
        await log.flush()
        disk.crash(SeededEntropy(Random(seed)))
        found = (await opened(world)).get(PARTITION)
        assert found is not None, "the name of the directory was not on the device"
        assert found.end_offset == 1
        assert found.topic_id == TOPIC_ID
        assert found.epochs.entries() == [(0, 0)]

    asyncio.run(main())


def test_a_recovery_tells_how_far_it_has_come() -> None:
    async def main() -> None:
        disk = MemoryDisk(RealClock())
        world = world_of(disk)
        store = await opened(world)
        now_ms = world.clock.wall_ms()
        for index in range(3):
            log = await store.create(TopicPartition("t", index), TOPIC_ID)
            for _ in range(5):
                batch = encode_batch([(now_ms, b"k", bytes(500_000), ())])
                validated = validate(batch, Rules.of(log.settings), now_ms=now_ms)
                log.append_as_leader(validated, leader_epoch=0, now_ms=now_ms)
        size_bytes = sum(log.size_bytes for log in store.logs.values())
        await store.close(clean=False)
        disk.kill()
        told: list[RecoveryProgress] = []
        again = await opened(world, on_progress=lambda progress: told.append(copy(progress)))
        assert [each.bytes_done for each in told] == sorted(each.bytes_done for each in told)
        assert len(told) > 6
        assert told[-1].is_done
        assert told[-1].bytes_done == told[-1].bytes_total == size_bytes
        assert {each.log for each in told} == {"t-0", "t-1", "t-2"}
        await again.close(clean=True)
        disk.kill()
        told.clear()
        await opened(world, on_progress=told.append)
        assert not told, "after a clean stop there is nothing to recover"

    asyncio.run(main())
