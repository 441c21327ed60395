"""How far a log is clean: what the checkpoint says after cuts, deletions and restarts."""

from __future__ import annotations

import asyncio

import pytest
from cleaner_bench import KEYED, Bench, run

from barnabas.model.errors import ApiError


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
