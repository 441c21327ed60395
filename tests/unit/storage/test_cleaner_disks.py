"""The cleaner on disks that rot, fill up, fail or lose a file."""

from __future__ import annotations

from cleaner_bench import KEYED, OTHER, Bench, run

from barnabas.world.disk import DiskFailure


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
