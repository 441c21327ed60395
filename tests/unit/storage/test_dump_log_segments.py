"""Kafka's own DumpLogSegments reads our files without complaint.

Needs Java and Kafka's jars: run by ``pytest -m java``.
"""

from __future__ import annotations

import asyncio
import random
import re
import subprocess
from pathlib import Path
from struct import pack

import pytest
from tools.kafka_jars import java_command

from barnabas.model.ids import TopicPartition, Uuid
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.wire.compression import Codec
from barnabas.wire.records import encode_batch
from barnabas.world.real import real_world

SETTINGS = TopicSettings(segment_bytes=60_000, index_interval_bytes=1024)
BATCHES = 600

pytestmark = pytest.mark.java


async def write_log(directory: str, *, is_killed: bool) -> int:
    """Batches of every codec, from plain, idempotent and transactional producers; the number of records."""
    world = real_world()
    log = await PartitionLog.open(
        world, directory, TopicPartition("orders", 0), SETTINGS, topic_id=Uuid(bytes(range(16))), was_clean=False
    )
    chance = random.Random(4)
    now_ms = world.clock.wall_ms()
    client, coordinator = Rules.of(SETTINGS), Rules.of(SETTINGS, origin=Origin.COORDINATOR)
    sequence = 0
    for number in range(BATCHES):
        is_transactional = number % 50 >= 40
        count = chance.randrange(1, 5)
        batch = encode_batch(
            [(now_ms + number + index, b"key", chance.randbytes(60), (("header", b"x"),)) for index in range(count)],
            codec=Codec(number % 5),
            producer_id=9,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        sequence += count
        log.append_as_leader(validate(batch, client, now_ms=now_ms), leader_epoch=number // 200, now_ms=now_ms)
        if number % 50 == 49:
            marker = encode_batch(
                [(now_ms, pack(">hh", 0, number % 100 == 49), pack(">hi", 0, 1), ())],
                producer_id=9,
                producer_epoch=0,
                is_transactional=True,
                is_control=True,
            )
            log.append_as_leader(
                validate(marker, coordinator, now_ms=now_ms), leader_epoch=number // 200, now_ms=now_ms
            )
    end_offset = log.end_offset
    if is_killed:
        active = log.segments.active
        active.opened().truncate(active.size_bytes - 7)
        log = await PartitionLog.open(
            world, directory, TopicPartition("orders", 0), SETTINGS, topic_id=None, was_clean=False
        )
        assert log.end_offset < end_offset
    await log.close()
    return log.end_offset


def dump(directory: Path, *suffixes: str, options: tuple[str, ...] = ()) -> str:
    files = sorted(str(path) for path in directory.iterdir() if path.suffix in suffixes)
    assert files
    command = java_command("org.apache.kafka.tools.DumpLogSegments", "--files", ",".join(files))
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("is_killed", [False, True])
def test_kafka_reads_every_record_and_finds_no_fault(tmp_path: Path, is_killed: bool) -> None:
    directory = tmp_path / "orders-0"
    end_offset = asyncio.run(write_log(str(directory), is_killed=is_killed))
    output = dump(directory, ".log", ".index", ".timeindex", ".txnindex", ".snapshot", options=("--deep-iteration",))
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+) ", output, re.MULTILINE)]
    assert offsets == list(range(end_offset))
    assert "isvalid: false" not in output
    assert "Mismatches in" not in output
    assert "Found timestamp mismatch" not in output
    assert "Index timestamp" not in output
    assert "Found out of order timestamp" not in output
    # The tool counts a log that does not start at 0 as a gap before its first record; any other gap is a fault.
    assert set(re.findall(r"^\s+(-?\d+) is followed by", output, re.MULTILINE)) <= {"-1"}
    assert re.search(r"^version: 0 producerId: 9 ", output, re.MULTILINE)
    assert re.search(r"^producerId: 9 ", output, re.MULTILINE)


def test_the_indexes_pass_kafkas_sanity_check(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    asyncio.run(write_log(str(directory), is_killed=False))
    output = dump(directory, ".index", ".timeindex", options=("--index-sanity-check",))
    indexes = [path for path in directory.iterdir() if path.suffix in (".index", ".timeindex")]
    assert output.count("passed sanity check") == len(indexes)
