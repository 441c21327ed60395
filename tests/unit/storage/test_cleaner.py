"""The cleaner at work on a store: what it chooses, what interrupts it, and what it leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.model.settings import InvalidSetting
from barnabas.storage.cleaner import Cleaner
from barnabas.storage.cleaner_settings import CLEANER_SETTINGS, UNLIMITED, CleanerSettings
from barnabas.storage.cleaner_status import CleanerStatus
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Rules, validate
from barnabas.testing.loop import SimulatedLoop
from barnabas.testing.world import SimulatedClock, simulated_world
from barnabas.wire.records import decode_all, encode_batch
from barnabas.world.disk import DiskFailure
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


def test_a_round_leaves_the_last_of_each_key_and_says_so() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        size_bytes = log.size_bytes
        assert await bench.cleaner.clean_dirtiest()
        assert bench.offsets(log) == [26, 27, 28, 29]
        assert log.size_bytes < size_bytes
        assert bench.leftovers() == []
        assert bench.checkpoint() == "0\n1\nkeyed 0 30\n"
        last = bench.status().last
        assert last is not None
        assert (last.first_dirty_offset, last.end_offset, last.keys) == (0, 30, 4)
        # Where a segment ends is told by its last batch, which stays.
        assert last.batches_read == 60
        assert 4 <= last.batches_kept < 4 + len(log.segments)
        assert not await bench.cleaner.clean_dirtiest()

    run(scene)


def test_cleaned_segments_become_one_and_what_belonged_to_the_others_goes() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        assert len(log.segments) > 4
        # By their sizes before they are cleaned: in the first round each is full.
        assert await bench.cleaner.clean_dirtiest()
        assert len(log.segments) > 4
        bench.fill(log, 4)
        assert await bench.cleaner.clean_dirtiest()
        bases = log.segments.base_offsets
        assert len(bases) == 4
        names = bench.disk.list("/data/keyed-0")
        assert sorted({int(name[:20]) for name in names if name.endswith((".log", ".index", ".timeindex"))}) == bases
        assert {int(name[:20]) for name in names if name.endswith(".snapshot")} <= set(bases)

    run(scene)


def test_the_dirtiest_log_comes_first() -> None:
    async def scene(bench: Bench) -> None:
        clean, dirty = await bench.log(), await bench.log(OTHER)
        bench.fill(clean)
        await bench.cleaner.clean_dirtiest()
        bench.fill(clean, 8)
        bench.fill(dirty, 8)
        assert await bench.cleaner.clean_dirtiest()
        assert bench.status(OTHER).last is not None
        assert clean.cleaned_offset == 30

    run(scene)


def test_status_says_why_a_log_is_not_cleaned() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        assert bench.cleaner.status(OTHER) is None
        assert bench.status().state == "clean"
        bench.append(log, b"a", b"b")
        assert "active segment" in bench.status().reason
        bench.fill(log)
        assert bench.status().state == "due"
        log.settings = TopicSettings(cleanup_policy=("compact",), min_cleanable_dirty_ratio=1.0)
        assert bench.status()[:2] == ("waiting", "100% is dirty, more than 100% must be")
        log.settings = TopicSettings(cleanup_policy=("compact",), min_compaction_lag_ms=10**9)
        assert "min.compaction.lag.ms" in bench.status().reason
        log.settings = TopicSettings(cleanup_policy=("delete",))
        assert bench.status().state == "not compacted"
        log.settings = TopicSettings(cleanup_policy=())
        assert bench.status().state == "not compacted"
        log.settings = COMPACTED
        bench.settings = bench.settings._replace(is_enabled=False)
        assert bench.status().state == "disabled"
        bench.settings = bench.settings._replace(is_enabled=True)
        seen: list[CleanerStatus] = []
        bench.interfere(lambda: seen.append(bench.status()), after=1)
        await bench.cleaner.clean_dirtiest()
        assert seen[0].state == "cleaning"
        assert seen[0].under_way is not None

    run(scene)


def test_an_open_transaction_holds_the_cleaner_back() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log, 10)
        first = log.end_offset
        bench.append(log, b"0", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
        bench.fill(log, 20)
        assert await bench.cleaner.clean_dirtiest()
        assert log.cleaned_offset == first
        assert "transaction is open" in bench.status().reason

    run(scene)


@pytest.mark.parametrize("after", [0, 3, 9])
def test_records_that_arrive_meanwhile_are_kept(after: int) -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        bench.interfere(lambda: bench.fill(log, 20), after=after)
        assert await bench.cleaner.clean_dirtiest()
        assert bench.offsets(log) == [26, 27, 28, 29, *range(30, 50)]
        assert await bench.cleaner.clean_dirtiest()
        assert bench.offsets(log) == [46, 47, 48, 49]

    run(scene)


def _truncate(bench: Bench, log: PartitionLog) -> None:
    log.truncate_to(17)


def _change_policy(bench: Bench, log: PartitionLog) -> None:
    log.settings = TopicSettings(cleanup_policy=("delete",), segment_bytes=700)


@pytest.mark.parametrize("after", range(0, 12, 2))
@pytest.mark.parametrize("deed", [_truncate, _change_policy])
def test_a_round_gives_up_when_its_log_changes(deed: Callable[[Bench, PartitionLog], None], after: int) -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        bench.interfere(lambda: deed(bench, log), after=after)
        assert not await bench.cleaner.clean_dirtiest()
        assert bench.leftovers() == []
        assert log.cleaned_offset is None
        if deed is _change_policy:
            assert bench.offsets(log)[-4:] == [26, 27, 28, 29]
        else:
            # Cut off below what was replicated, so the last of each key may be lost: that is not the cleaner's doing.
            bench.fill(log, 4)
        log.settings = COMPACTED
        assert await bench.cleaner.clean_dirtiest()
        end = log.end_offset
        assert bench.offsets(log) == list(range(end - 4, end))
        await bench.store.checkpoint()
        await bench.restart()
        assert bench.offsets(bench.store.logs[KEYED]) == list(range(end - 4, end))

    run(scene)


@pytest.mark.parametrize("after", range(0, 12, 3))
def test_a_log_may_be_deleted_while_it_is_cleaned(after: int) -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        bench.interfere(lambda: bench.store.delete(KEYED), after=after)
        assert not await bench.cleaner.clean_dirtiest()
        assert log.failure is None
        assert bench.store.offline == {}
        assert bench.cleaner.status(KEYED) is None

    run(scene)


@pytest.mark.parametrize("after", range(0, 12, 3))
def test_retention_may_take_segments_away_meanwhile(after: int) -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)

        def retain() -> None:
            log.delete_records(14)
            assert log.retain(bench.clock.wall_ms()) > 0

        bench.interfere(retain, after=after)
        await bench.cleaner.clean_dirtiest()
        assert bench.leftovers() == []
        while await bench.cleaner.clean_dirtiest():
            pass
        assert bench.offsets(log) == [26, 27, 28, 29]

    run(scene)


def test_a_reader_finishes_with_the_bytes_it_was_given() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        read = log.read(0, size_bytes_max=1 << 20, end_offset_max=log.end_offset, at_least_one=True)
        assert read.records is not None
        file, position, size_bytes = read.records
        before = file.read(position, size_bytes)
        assert await bench.cleaner.clean_dirtiest()
        assert file.read(position, size_bytes) == before

    run(scene)


def test_stopping_ends_a_round_and_the_rest() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        stopping: list[asyncio.Task[None]] = []
        bench.interfere(lambda: stopping.append(asyncio.create_task(bench.cleaner.stop())), after=4)
        bench.cleaner.start()
        while not stopping:
            await asyncio.sleep(0.001)
        await stopping[0]
        assert bench.leftovers() == []
        assert log.cleaned_offset is None

    run(scene)


def test_the_cleaner_rests_when_there_is_nothing_to_do() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.cleaner.start()
        await asyncio.sleep(1)
        bench.fill(log)
        assert bench.cleaner.rounds_count == 0
        await asyncio.sleep(0.11)
        assert bench.cleaner.rounds_count == 1
        await bench.cleaner.stop()

    run(scene)


def test_a_disabled_cleaner_waits_until_it_may() -> None:
    async def scene(bench: Bench) -> None:
        bench.settings = bench.settings._replace(is_enabled=False)
        bench.fill(await bench.log())
        bench.cleaner.start()
        await asyncio.sleep(1)
        assert bench.cleaner.rounds_count == 0
        bench.settings = bench.settings._replace(is_enabled=True)
        await asyncio.sleep(0.5)
        assert bench.cleaner.rounds_count == 1
        await bench.cleaner.stop()

    run(scene)


def test_reading_and_writing_keep_to_the_rate() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        size_bytes = log.size_bytes
        bench.settings = bench.settings._replace(io_bytes_per_second_max=1000.0)
        started_ms = bench.clock.monotonic_ms()
        assert await bench.cleaner.clean_dirtiest()
        last = bench.status().last
        assert last is not None
        assert last.read_bytes == 2 * size_bytes
        expected_ms = last.read_bytes + last.written_bytes
        assert expected_ms - 50 <= bench.clock.monotonic_ms() - started_ms <= expected_ms + 50

    run(scene)


def test_a_map_that_is_too_small_for_one_batch_is_a_reason_not_a_loop() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        now_ms = bench.clock.wall_ms()
        batch = encode_batch([(now_ms, b"%d" % number, b"", ()) for number in range(50)])
        log.append_as_leader(validate(batch, Rules.of(COMPACTED), now_ms=now_ms), leader_epoch=0, now_ms=now_ms)
        log.advance_high_watermark(50)
        log.roll(now_ms)
        bench.settings = bench.settings._replace(dedupe_buffer_bytes=24 * 20)
        assert not await bench.cleaner.clean_dirtiest()
        assert bench.status().state == "failed"
        assert "log.cleaner.dedupe.buffer.size" in bench.status().reason
        assert bench.offsets(log) == list(range(50))

    run(scene)


def test_a_small_map_takes_several_rounds() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log, 60, keys=20)
        bench.settings = bench.settings._replace(dedupe_buffer_bytes=24 * 10)
        log.settings = TopicSettings(cleanup_policy=("compact",), segment_bytes=700, min_cleanable_dirty_ratio=0.0)
        ends = []
        while await bench.cleaner.clean_dirtiest():
            assert log.cleaned_offset is not None
            ends.append(log.cleaned_offset)
        assert len(ends) > 3
        assert ends == sorted(set(ends))
        assert bench.offsets(log) == list(range(40, 60))

    run(scene)


def test_a_rotten_log_is_left_alone_and_the_others_are_cleaned() -> None:
    async def scene(bench: Bench) -> None:
        rotten, sound = await bench.log(), await bench.log(OTHER)
        bench.fill(rotten)
        bench.fill(sound)
        bench.disk.flip_bit(rotten.segments[1].path(".log"), 70, 1)
        while await bench.cleaner.clean_dirtiest():
            pass
        await bench.cleaner.clean_dirtiest()
        assert bench.offsets(sound) == [26, 27, 28, 29]
        assert bench.status().state == "failed"
        assert "checksum" in bench.status().reason
        assert bench.leftovers() == []
        await bench.store.delete(KEYED)
        bench.fill(await bench.log())
        assert bench.status().state == "due"

    run(scene)


def test_a_full_disk_only_puts_it_off() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        await log.flush()
        bench.disk.capacity_bytes = bench.disk.used_bytes() + 100
        assert not await bench.cleaner.clean_dirtiest()
        assert bench.leftovers() == []
        assert log.failure is None
        assert bench.status().state == "due"
        bench.disk.capacity_bytes = None
        assert await bench.cleaner.clean_dirtiest()

    run(scene)


def test_a_failing_disk_takes_the_directory_offline() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        await log.flush()
        bench.disk.fail_next_sync("/data/keyed-0/00000000000000000000.log.cleaned")
        assert not await bench.cleaner.clean_dirtiest()
        assert isinstance(log.failure, DiskFailure)
        assert "/data" in bench.store.offline

    run(scene)


# --- the checkpoint ---------------------------------------------------------------------------------------------------


def test_a_truncation_takes_the_checkpoint_back() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        assert await bench.cleaner.clean_dirtiest()
        log.truncate_to(28)
        assert log.cleaned_offset == 28
        await asyncio.sleep(0.1)
        assert bench.checkpoint() == "0\n1\nkeyed 0 28\n"
        log.truncate_fully(5)
        assert log.cleaned_offset == 5

    run(scene)


def test_a_log_that_starts_later_is_dirty_from_its_start() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        assert await bench.cleaner.clean_dirtiest()
        bench.fill(log, 20)
        log.delete_records(40)
        found = bench.status().cleanable
        assert found is not None
        assert found.first_dirty_offset == 40
        with pytest.raises(ApiError):
            log.delete_records(1000)

    run(scene)


def test_a_topic_that_is_made_again_begins_anew() -> None:
    async def scene(bench: Bench) -> None:
        bench.fill(await bench.log())
        assert await bench.cleaner.clean_dirtiest()
        await bench.store.delete(KEYED)
        assert bench.checkpoint() == "0\n0\n"
        assert (await bench.log()).cleaned_offset is None

    run(scene)


def test_how_far_a_log_is_clean_survives_a_restart() -> None:
    async def scene(bench: Bench) -> None:
        bench.fill(await bench.log())
        assert await bench.cleaner.clean_dirtiest()
        await bench.restart()
        assert bench.store.logs[KEYED].cleaned_offset == 30
        assert not await bench.cleaner.clean_dirtiest()

    run(scene)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_the_settings_are_kafkas() -> None:
    assert CleanerSettings.of({}) == CleanerSettings(True, 15_000, 128 * 1024 * 1024, UNLIMITED)
    values = CLEANER_SETTINGS.parse(
        {"log.cleaner.enable": "false", "log.cleaner.backoff.ms": "5", "log.cleaner.io.max.bytes.per.second": "1e6"}
    )
    assert CleanerSettings.of(values)[:2] == (False, 5)
    assert CleanerSettings.of(values).io_bytes_per_second_max == 1e6


def test_a_buffer_that_holds_next_to_nothing_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        CLEANER_SETTINGS.parse({"log.cleaner.dedupe.buffer.size": "1000"})


def test_the_active_segment_ends_before_it_keeps_records_from_being_compacted_in_time() -> None:
    async def scene(bench: Bench) -> None:
        settings = TopicSettings(cleanup_policy=("compact",), max_compaction_lag_ms=1000)
        log = await bench.log(KEYED, settings)
        bench.append(log, b"a")
        await asyncio.sleep(0.9)
        bench.append(log, b"a")
        assert len(log.segments) == 1
        await asyncio.sleep(0.2)
        bench.append(log, b"a")
        assert len(log.segments) == 2
        await asyncio.sleep(1)
        log.settings = TopicSettings(
            cleanup_policy=("compact",), max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1.0
        )
        assert bench.status().state == "due"
        assert await bench.cleaner.clean_dirtiest()
        assert bench.offsets(log) == [1, 2]

    run(scene)


def test_a_file_that_somebody_took_away_is_named() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        path = log.segments[1].path(".log")
        await log.flush()
        bench.disk.remove(path)
        assert not await bench.cleaner.clean_dirtiest()
        assert bench.status()[:2] == ("failed", f"{path} is missing")

    run(scene)


def test_a_producers_batch_goes_only_when_its_next_one_is_durable() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        producer = {"producer_id": 5, "producer_epoch": 0}
        bench.append(log, b"0", **producer, base_sequence=0)
        bench.append(log, b"0", **producer, base_sequence=1)
        bench.fill(log, 10)
        bench.append(log, b"0", **producer, base_sequence=2)
        assert log.recovery_point < log.end_offset
        assert await bench.cleaner.clean_dirtiest()
        assert 1 not in bench.offsets(log)
        assert log.recovery_point == log.end_offset

    run(scene)
