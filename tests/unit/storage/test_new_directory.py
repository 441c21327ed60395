"""A partition that was just made: once something in it is synced, no power cut takes it away with its directory."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from barnabas.model.ids import TopicPartition, Uuid
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


async def opened(world: World) -> LogStore:
    return await LogStore.open(
        world,
        Timers(world.clock),
        ["/data"],
        node_id=1,
        cluster_id="c",
        defaults=TopicSettings(),
        settings_of=lambda topic: TopicSettings(),
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
