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


def test_a_missing_file_takes_one_log_offline_and_is_named() -> None:
    async def scene(bench: Bench) -> None:
        log, sound = await bench.log(), await bench.log(OTHER)
        bench.fill(log)
        bench.fill(sound)
        path = log.segments[1].path(".log")
        await log.flush()
        bench.disk.remove(path)
        while OTHER not in bench.cleaner._last:
            await bench.cleaner.clean_dirtiest()
        fault = bench.store.faults.get(KEYED)
        assert fault is not None
        assert fault.reason == f"{path}: the path is gone"
        assert bench.offsets(sound) == [26, 27, 28, 29]
        assert not bench.store.offline


def test_a_directory_that_was_removed_stops_the_cleaner_for_no_other_log() -> None:
    async def scene(bench: Bench) -> None:
        gone, sound = await bench.log(), await bench.log(OTHER)
        bench.fill(gone)
        bench.cleaner.start()
        bench.disk.remove_tree("/data/keyed-0")
        await bench.timers.sleep(1000)
        bench.fill(sound)
        await bench.timers.sleep(1000)
        assert bench.offsets(sound) == [26, 27, 28, 29]
        assert list(bench.store.logs) == [OTHER]
        await bench.cleaner.stop()

    run(scene)


def test_a_mistake_of_ours_does_not_end_the_cleaner() -> None:
    async def scene(bench: Bench) -> None:
        reports: list[str] = []
        bench.loop.set_exception_handler(lambda _, context: reports.append(context["task_name"]))
        settings, bench.settings = bench.settings, None  # type: ignore[assignment]
        bench.cleaner.start()
        await bench.timers.sleep(1500)
        bench.settings = settings
        log = await bench.log()
        bench.fill(log)
        await bench.timers.sleep(2000)
        assert bench.offsets(log) == [26, 27, 28, 29]
        assert set(reports) == {"cleaner"}
        await bench.cleaner.stop()

    run(scene)
