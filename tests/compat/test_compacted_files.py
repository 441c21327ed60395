"""Kafka's own reader reads what our cleaner wrote, every batch of it and every index, and finds no fault."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from struct import pack

import pytest
from kafka_tools import dump_log_segments

from barnabas.model.ids import TopicPartition
from barnabas.storage.cleaner import Cleaner
from barnabas.storage.cleaner_settings import CleanerSettings
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.wire.compression import Codec
from barnabas.wire.records import encode_batch
from barnabas.world.adjustable import AdjustableClock
from barnabas.world.real import RealClock, RealDisk, RealEntropy, RealWorkers
from barnabas.world.timers import Timers
from barnabas.world.world import World

SETTINGS = TopicSettings(
    cleanup_policy=("compact",),
    segment_bytes=30_000,
    index_interval_bytes=1024,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1000,
    file_delete_delay_ms=0,
)
COMPLAINTS = ("isvalid: false", "Mismatches in", "timestamp mismatch", "Index timestamp", "out of order", "Exception")


async def write_cleaned(directory: Path) -> set[int]:
    """Two rounds over batches of every codec, tombstones and transactions; the offsets of all records that are left."""
    clock = AdjustableClock(RealClock())
    world = World(clock=clock, disk=RealDisk(), entropy=RealEntropy(), workers=RealWorkers())
    timers = Timers(clock)
    store = await LogStore.open(
        world,
        timers,
        [str(directory)],
        node_id=1,
        cluster_id="c",
        defaults=SETTINGS,
        settings_of=lambda topic: SETTINGS,
    )
    log = await store.create(TopicPartition("keyed", 0), None, SETTINGS)
    chance = random.Random(3)
    client, coordinator = Rules.of(SETTINGS), Rules.of(SETTINGS, origin=Origin.COORDINATOR)
    last: dict[bytes, int] = {}
    pending: dict[bytes, int] = {}
    sequence = 0
    cleaner = Cleaner(world, timers, store, settings=CleanerSettings)
    for number in range(900):
        now_ms = clock.wall_ms()
        is_transactional = number % 30 >= 15
        records = [
            (now_ms, b"%d" % chance.randrange(60), chance.randbytes(80) if chance.random() < 0.9 else None, ())
            for _ in range(chance.randrange(1, 6))
        ]
        batch = encode_batch(
            records,
            codec=Codec(number % 5),
            producer_id=9,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        sequence += len(records)
        at = log.append_as_leader(validate(batch, client, now_ms=now_ms), leader_epoch=0, now_ms=now_ms).base_offset
        (pending if is_transactional else last).update({record[1]: at + index for index, record in enumerate(records)})
        if number % 30 == 29:
            is_commit = number % 60 == 29
            marker = encode_batch(
                [(now_ms, pack(">hh", 0, is_commit), pack(">hi", 0, 1), ())],
                producer_id=9,
                producer_epoch=0,
                is_transactional=True,
                is_control=True,
            )
            log.append_as_leader(validate(marker, coordinator, now_ms=now_ms), leader_epoch=0, now_ms=now_ms)
            last.update(pending if is_commit else {})
            pending = {}
        log.advance_high_watermark(log.end_offset)
        if number in (400, 700):
            while await cleaner.clean_dirtiest():
                pass
            clock.advance(2000)
    log.roll(clock.wall_ms())
    while await cleaner.clean_dirtiest():
        pass
    assert cleaner.rounds_count >= 3
    await store.close(clean=True)
    timers.close()
    await world.workers.close()
    return set(last.values())


@pytest.mark.java
def test_kafka_reads_cleaned_segments_and_their_indexes(tmp_path: Path) -> None:
    last = asyncio.run(write_cleaned(tmp_path))
    files = sorted((tmp_path / "keyed-0").iterdir())
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    code, text = dump_log_segments([file for file in files if file.suffix in kinds], "--deep-iteration")
    assert code == 0, text
    for complaint in COMPLAINTS:
        assert complaint not in text
    offsets = {int(found) for found in re.findall(r"^\| offset: (\d+) .* keySize: \d+ ", text, re.MULTILINE)}
    # Only tombstones whose time had come are missing; nothing is there that is not the last of its key, or a marker.
    gone = last - offsets
    assert len(gone) < len(last) / 2
    assert len(offsets) < 3 * len(last)
    assert "deleteHorizonMs: OptionalLong[" in text
    indexes = [file for file in files if file.suffix in (".index", ".timeindex")]
    code, text = dump_log_segments(indexes, "--index-sanity-check")
    assert code == 0, text
    assert text.count("passed sanity check") + text.count("is empty") == len(indexes)
