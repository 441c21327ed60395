"""The metadata log on a disk: what a crash in the midst of an installation leaves."""

from __future__ import annotations

import asyncio

from driver_stage import voter

from barnabas.model.ids import METADATA_TOPIC
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, OffsetAndEpoch
from barnabas.raft.metadata_log import MetadataLog
from barnabas.raft.settings import RaftSettings
from barnabas.raft.snapshot import PartialSnapshot, snapshot_path, write_snapshot
from barnabas.raft.voters import VoterSet
from barnabas.wire.records import encode_batch
from barnabas.world.memory import MemoryDisk
from barnabas.world.real import real_world
from barnabas.world.world import World

DIRECTORY = f"/data/{METADATA_TOPIC}-0"
VOTERS = VoterSet.of(voter(1), voter(2), voter(3))


def memory_world() -> World:
    real = real_world()
    return World(clock=real.clock, disk=MemoryDisk(real.clock), entropy=real.entropy, workers=real.workers)


async def opened(world: World) -> MetadataLog:
    return await MetadataLog.open(world, DIRECTORY, RaftSettings(), initial_voters=VOTERS)


def batch(base_offset: int, count: int, epoch: int) -> bytes:
    return bytes(encode_batch([(0, None, b"v", ())] * count, base_offset=base_offset, leader_epoch=epoch))


async def download(world: World, snapshot: OffsetAndEpoch) -> None:
    """The file of a snapshot that came from the leader, before the log was cut for it."""
    part = PartialSnapshot(world.disk, DIRECTORY, snapshot)
    await write_snapshot(part, [b"state"], append_time_ms=1, now_ms=1, kraft_version=1, voter_set=VOTERS)


def test_a_downloaded_snapshot_replaces_a_shorter_log_of_a_later_epoch() -> None:
    """A leader of epoch 6 wrote to us and was overruled; the records of epoch 5 were committed instead."""

    async def main() -> None:
        world = memory_world()
        log = await opened(world)
        log.append_fetched(batch(0, 8, 5) + batch(8, 1, 6), end_offset=9)
        await log.sync()
        await log.close()
        await download(world, OffsetAndEpoch(10, 5))
        log = await opened(world)
        assert (log.end_offset, log.view().end) == (10, OffsetAndEpoch(10, 5))
        log.append_fetched(batch(10, 1, 7), end_offset=11)
        await log.close()

    asyncio.run(main())


def test_a_downloaded_snapshot_replaces_a_longer_log_that_parted_from_it() -> None:
    async def main() -> None:
        world = memory_world()
        log = await opened(world)
        log.append_fetched(batch(0, 8, 5) + batch(8, 8, 6), end_offset=16)
        await log.sync()
        await log.close()
        await download(world, OffsetAndEpoch(10, 5))
        log = await opened(world)
        assert log.view().end == OffsetAndEpoch(10, 5)
        await log.close()

    asyncio.run(main())


def test_a_snapshot_of_its_own_leaves_the_log_as_it_is() -> None:
    async def main() -> None:
        world = memory_world()
        log = await opened(world)
        log.append_fetched(batch(0, 8, 5) + batch(8, 8, 6), end_offset=16)
        await log.create_snapshot(log.view(), OffsetAndEpoch(8, 5), 1, [b"state"])
        await log.create_snapshot(log.view(), OffsetAndEpoch(16, 6), 1, [b"state"])
        await log.close()
        log = await opened(world)
        assert log.snapshots == [BOOTSTRAP_SNAPSHOT, OffsetAndEpoch(8, 5), OffsetAndEpoch(16, 6)]
        assert (log.view().start_offset, log.view().end) == (0, OffsetAndEpoch(16, 6))
        await log.close()

    asyncio.run(main())


def test_a_beginning_that_was_given_up_meanwhile_is_not_made_one() -> None:
    """A snapshot is installed while older ones are being dropped."""

    async def main() -> None:
        world = memory_world()
        log = await opened(world)
        log.append_fetched(batch(0, 8, 5), end_offset=8)
        log.committed(8)
        await log.create_snapshot(log.view(), OffsetAndEpoch(4, 5), 1, [b"state"])
        await log.create_snapshot(log.view(), OffsetAndEpoch(8, 5), 1, [b"state"])
        await download(world, OffsetAndEpoch(20, 6))
        content = world.disk.read_all(snapshot_path(DIRECTORY, OffsetAndEpoch(20, 6)), size_bytes_max=1 << 20)
        log.begin_download(OffsetAndEpoch(20, 6))
        log.append_download(content)
        synced = asyncio.Event()
        sync_directory = world.disk.sync_directory

        async def slow(path: str) -> None:
            world.disk.sync_directory = sync_directory  # type: ignore[method-assign]
            await synced.wait()

        world.disk.sync_directory = slow  # type: ignore[method-assign]
        cleaning = asyncio.create_task(log.start_after(OffsetAndEpoch(8, 5)))
        await asyncio.sleep(0)
        (await log.install(OffsetAndEpoch(20, 6))).close()
        synced.set()
        assert await cleaning is False
        assert (log.start_offset, log.end_offset, log.partition_log.log_start_offset) == (20, 20, 20)
        await log.close()

    asyncio.run(main())
