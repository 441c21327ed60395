"""The cleaner at work on a store: what it chooses, how its settings bound it, and what it leaves behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from cleaner_bench import COMPACTED, KEYED, OTHER, Bench, run

from barnabas.model.settings import InvalidSetting
from barnabas.storage.cleaner_settings import UNLIMITED, CleanerSettings
from barnabas.storage.cleaner_status import CleanerStatus
from barnabas.storage.settings import TopicSettings
from barnabas.storage.validate import Rules, validate
from barnabas.wire.records import encode_batch


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
        bench.settings = replace(bench.settings, is_enabled=False)
        assert bench.status().state == "disabled"
        bench.settings = replace(bench.settings, is_enabled=True)
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
        bench.settings = replace(bench.settings, is_enabled=False)
        bench.fill(await bench.log())
        bench.cleaner.start()
        await asyncio.sleep(1)
        assert bench.cleaner.rounds_count == 0
        bench.settings = replace(bench.settings, is_enabled=True)
        await asyncio.sleep(0.5)
        assert bench.cleaner.rounds_count == 1
        await bench.cleaner.stop()

    run(scene)


def test_reading_and_writing_keep_to_the_rate() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log)
        size_bytes = log.size_bytes
        bench.settings = replace(bench.settings, io_bytes_per_second_max=1000.0)
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
        bench.settings = replace(bench.settings, dedupe_buffer_bytes=24 * 20)
        assert not await bench.cleaner.clean_dirtiest()
        assert bench.status().state == "failed"
        assert "log.cleaner.dedupe.buffer.size" in bench.status().reason
        assert bench.offsets(log) == list(range(50))

    run(scene)


def test_a_small_map_takes_several_rounds() -> None:
    async def scene(bench: Bench) -> None:
        log = await bench.log()
        bench.fill(log, 60, keys=20)
        bench.settings = replace(bench.settings, dedupe_buffer_bytes=24 * 10)
        log.settings = TopicSettings(cleanup_policy=("compact",), segment_bytes=700, min_cleanable_dirty_ratio=0.0)
        ends = []
        while await bench.cleaner.clean_dirtiest():
            assert log.cleaned_offset is not None
            ends.append(log.cleaned_offset)
        assert len(ends) > 3
        assert ends == sorted(set(ends))
        assert bench.offsets(log) == list(range(40, 60))

    run(scene)


def test_the_settings_are_kafkas() -> None:
    assert CleanerSettings.of_values({}) == CleanerSettings(
        is_enabled=True, backoff_ms=15_000, dedupe_buffer_bytes=128 * 1024 * 1024, io_bytes_per_second_max=UNLIMITED
    )
    values = CleanerSettings.table().parse(
        {"log.cleaner.enable": "false", "log.cleaner.backoff.ms": "5", "log.cleaner.io.max.bytes.per.second": "1e6"}
    )
    settings = CleanerSettings.of_values(values)
    assert (settings.is_enabled, settings.backoff_ms) == (False, 5)
    assert settings.io_bytes_per_second_max == 1e6


def test_a_buffer_that_holds_next_to_nothing_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        CleanerSettings.table().parse({"log.cleaner.dedupe.buffer.size": "1000"})


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
