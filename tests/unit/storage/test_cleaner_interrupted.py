"""What may happen to a log while it is cleaned: appends, cuts, deletion, retention, readers, a stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from cleaner_bench import COMPACTED, KEYED, Bench, run

from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings


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
        file, position, size_bytes, _ = read.records
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
