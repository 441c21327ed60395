"""What a round of cleaning must not do on the loop: free the blocks of large files, which takes as long as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from cleaner_bench import COMPACTED, KEYED, Bench, run

from barnabas.storage.swapping import CleanedSegment

T = TypeVar("T")
DELAY_MS = 60_000
WAITING = replace(COMPACTED, file_delete_delay_ms=DELAY_MS)


def doomed(bench: Bench) -> list[str]:
    return [name for name in bench.disk.list("/data/keyed-0") if name.endswith(".deleted")]


def test_a_rename_never_takes_the_place_of_a_file_that_waits_for_its_deletion() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log(settings=WAITING)
        rename = bench.disk.rename
        taken: list[str] = []
        seen: set[str] = set()

        def watched(source: str, target: str) -> None:
            if bench.disk.exists(target) and target.endswith(".deleted"):
                taken.append(target)
            rename(source, target)

        bench.disk.rename = watched  # type: ignore[method-assign]
        for _ in range(6):
            bench.fill(log)
            assert await bench.cleaner.clean_dirtiest()
            seen.update(doomed(bench))
            await bench.timers.sleep(100)
        assert taken == []
        assert f"{0:020d}.log.1.deleted" in seen
        first = [name for name in doomed(bench) if name.startswith(f"{0:020d}.log")]
        assert len(first) == 1, "one that waits is enough: its elder went at once"
        assert bench.offsets(log) == [176, 177, 178, 179]
        await bench.timers.sleep(DELAY_MS)
        assert doomed(bench) == []
        await bench.restart()
        assert bench.offsets(bench.store.logs[KEYED]) == [176, 177, 178, 179]

    run(scene)


def test_what_a_cut_drops_twice_under_one_name_goes_the_same_way() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log(settings=WAITING)
        for _ in range(3):
            bench.append(log, *[b"k"] * 30)
            log.truncate_to(0)
        names = [name for name in doomed(bench) if ".log." in name]
        assert any(name.endswith(".log.1.deleted") for name in names)
        await bench.timers.sleep(DELAY_MS + 1)
        assert doomed(bench) == []

    run(scene)


def test_what_was_written_for_nothing_is_removed_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(bench: Bench) -> None:
        works: list[Callable[..., Any]] = []
        do = bench.workers.run

        async def noted(work: Callable[..., T], *arguments: object) -> T:
            works.append(work)
            return await do(work, *arguments)

        monkeypatch.setattr(bench.workers, "run", noted)
        log = await bench.log()
        bench.append(log, *(b"%d" % number for number in range(30)))  # every key once: nothing goes
        log.roll(bench.clock.wall_ms())
        assert await bench.cleaner.clean_dirtiest()
        assert bench.leftovers() == []
        assert any(getattr(work, "__func__", None) is CleanedSegment.remove for work in works)

    run(scene)
