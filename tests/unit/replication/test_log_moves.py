"""A log moves between two directories, and whatever else happens to it meanwhile leaves one whole log."""

from __future__ import annotations

import asyncio
from struct import pack

import pytest
from moving import FIRST, ORDERS, SECOND, TOPIC_ID, Moving, play

from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.replication import log_moves
from barnabas.storage.checkpoints import LOG_START_FILE
from barnabas.storage.identity import PARTITION_METADATA_FILE, read_partition_metadata, write_partition_metadata
from barnabas.world.disk import DiskFull


def fill(moving: Moving, count: int = 20) -> list[bytes]:
    values = [b"%d" % number for number in range(moving.log.end_offset, moving.log.end_offset + count)]
    for value in values:
        moving.append(value)
    return values


def test_what_arrives_while_a_copy_is_synced_does_not_keep_it_from_taking_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device so slow, and producers so fast, that each sync leaves more to copy than is copied in one go."""

    async def story(moving: Moving) -> None:
        fill(moving)
        moving.disk.sync_delay_ms = 40
        await moving.move()
        for _ in range(5000):
            moving.append(b"x" * 1500)
            await asyncio.sleep(0.001)
        assert moving.log.directory == f"{SECOND}/orders-0"

    monkeypatch.setattr(log_moves, "PIECE_BYTES", 4096)
    play(story)


def test_where_a_log_starts_is_written_down_before_its_copy_takes_over() -> None:
    """Or records that were deleted while it was copied would be back if the broker died right then."""

    async def story(moving: Moving) -> None:
        for _ in range(20):
            moving.append(b"x" * 50_000)
        moving.disk.sync_delay_ms = 20
        home = moving.store.home_at(SECOND)
        assert home is not None
        written: list[dict[TopicPartition, int]] = []
        moving.moves.on_moved = lambda partition: written.append(home.read_checkpoint(LOG_START_FILE))
        await moving.move()
        future = moving.store.futures.get(ORDERS)
        assert future is not None
        while future.log.end_offset == 0:
            await asyncio.sleep(0)
        moving.log.delete_records(3)
        await moving.settled()
        assert written == [{ORDERS: 3}]

    play(story)


def test_the_history_of_epochs_moves_too() -> None:
    """Compaction may have left no batch of an epoch, and the newest may not have any yet."""

    async def story(moving: Moving) -> None:
        for epoch in (1, 4, 5):
            moving.append(b"x", leader_epoch=epoch)
        moving.log.begin_epoch(9, moving.log.end_offset)
        # As compaction leaves it: the records of epoch 2 are gone.
        moving.log.epochs = type(moving.log.epochs).of([(1, 0), (2, 0), (4, 1), (5, 2), (9, 3)])
        before = moving.log.epochs.entries()
        await moving.move()
        await moving.settled()
        assert moving.log.directory == f"{SECOND}/orders-0"
        assert moving.log.epochs.entries() == before
        await moving.log.flush()
        content = moving.disk.read_all(f"{SECOND}/orders-0/leader-epoch-checkpoint", size_bytes_max=1 << 20)
        assert content == moving.log.epochs.encode()

    play(story)


def test_a_copy_does_not_remember_every_transaction_that_has_ended() -> None:
    async def story(moving: Moving) -> None:
        for number in range(200):
            moving.append(b"x" * 5000, producer_id=7, producer_epoch=0, base_sequence=number, is_transactional=True)
            commit = {"key": pack(">hh", 0, 1), "is_control": True}
            moving.append(pack(">hi", 0, 0), producer_id=7, producer_epoch=0, is_transactional=True, **commit)
        await moving.move()
        future = moving.store.futures.get(ORDERS)
        assert future is not None
        while moving.moved_count == 0:
            assert len(future.log.producers.unreplicated) <= 60
            await asyncio.sleep(0)

    play(story)


def test_a_directory_that_fails_while_a_copy_is_begun_gets_none() -> None:
    async def story(moving: Moving) -> None:
        values = fill(moving)
        moving.disk.fail_next_sync(f"{SECOND}/")
        with pytest.raises(ApiError):
            await moving.move()
        assert SECOND in moving.store.offline
        assert moving.store.futures.all() == []
        await moving.settled()
        assert moving.values() == values
        assert moving.log.directory == f"{FIRST}/orders-0"

    play(story)


def test_a_copy_of_a_log_that_had_the_name_before_is_not_continued() -> None:
    """Deleted and made again right before a power cut, which brought the copy's name back."""

    async def story(moving: Moving) -> None:
        values = fill(moving)
        await moving.store.checkpoint()
        await moving.die()
        stale = f"{SECOND}/orders-0.{'0' * 32}-future"
        moving.disk.make_directory(stale)
        for name in moving.disk.list(f"{FIRST}/orders-0"):
            copy = moving.disk.open(f"{stale}/{name}", create=True)
            copy.append(moving.disk.read_all(f"{FIRST}/orders-0/{name}", size_bytes_max=1 << 20))
        moving.disk.remove(f"{stale}/{PARTITION_METADATA_FILE}")
        write_partition_metadata(moving.disk, stale, Uuid(bytes(range(2, 18))))
        await moving.start()
        assert moving.store.futures.all() == []
        await moving.settled()
        assert moving.values() == values
        assert read_partition_metadata(moving.disk, moving.log.directory) == TOPIC_ID
        assert moving.names(SECOND, "-future") == []

    play(story)


def test_whose_a_copy_is_gets_to_the_device_before_the_move_is_confirmed() -> None:
    async def story(moving: Moving) -> None:
        fill(moving)
        await moving.move()
        future = moving.store.futures.get(ORDERS)
        assert future is not None
        moving.disk.crash(moving.world.entropy)
        assert read_partition_metadata(moving.disk, future.log.directory) == TOPIC_ID

    play(story)


def test_a_log_that_is_deleted_while_its_copy_takes_over_leaves_nothing() -> None:
    async def story(moving: Moving) -> None:
        fill(moving)
        moving.disk.sync_delay_ms = 50
        await moving.move()
        while moving.moved_count == 0:
            await asyncio.sleep(0.001)
        assert moving.names(SECOND, "-future"), "it has not got its name yet"
        moving.partition.leave()
        await moving.store.delete(ORDERS)
        await moving.settled()
        await asyncio.sleep(5)
        assert moving.names(FIRST) == moving.names(SECOND) == []

    play(story)


def test_segments_that_are_dropped_while_a_copy_takes_over_vanish() -> None:
    async def story(moving: Moving) -> None:
        fill(moving)
        moving.disk.sync_delay_ms = 50
        await moving.move()
        while moving.moved_count == 0:
            await asyncio.sleep(0.001)
        assert moving.log.directory.endswith("-future")
        moving.log.delete_records(moving.log.end_offset)
        moving.log.retain(moving.world.clock.wall_ms())
        await moving.settled()
        await asyncio.sleep(5)
        assert moving.log.directory == f"{SECOND}/orders-0"
        assert not [name for name in moving.disk.list(moving.log.directory) if name.endswith(".deleted")]

    play(story, segment_bytes=300)


def test_a_full_disk_under_a_copy_takes_no_directory_offline() -> None:
    """The log is cut, and there is no room to cut the copy: it is given up."""

    async def story(moving: Moving) -> None:
        fill(moving)
        moving.moves._bytes_per_second = lambda: 0
        await moving.move()
        future = moving.store.futures.get(ORDERS)
        assert future is not None

        def no_room(offset: int) -> None:
            raise DiskFull(future.log.directory, "No space left on device")

        future.log.truncate_to = future.log.truncate_fully = no_room  # type: ignore[method-assign]
        moving.log.truncate_to(5)
        assert not moving.store.offline
        assert moving.store.futures.all() == []
        moving.moves._bytes_per_second = lambda: 1 << 40
        await moving.settled()
        await moving.move()
        await moving.settled()
        assert moving.values() == [b"%d" % number for number in range(5)]
        assert moving.log.directory == f"{SECOND}/orders-0"

    play(story)


def test_a_move_that_nobody_carries_out_is_begun_when_it_is_asked_for_again() -> None:
    async def story(moving: Moving) -> None:
        values = fill(moving)
        moving.moves._bytes_per_second = lambda: 0
        await moving.move()
        moving.moves._tasks.cancel()
        await moving.settled()
        moving.moves._bytes_per_second = lambda: 1 << 40
        await moving.move()
        await moving.settled()
        assert moving.log.directory == f"{SECOND}/orders-0"
        assert moving.values() == values

    play(story)
