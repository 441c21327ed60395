"""Every single bit of a segment of 64 KiB is flipped, one at a time: recovery finds it, and so does whoever reads.

By default a slice of the 524,288 flips is tried; ``BARNABAS_BIT_FLIPS=all`` tries every one. What Kafka's format does
not protect by its checksum (the offset of a batch, its leader epoch, its length) is found by recovery all the same.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from random import Random

from barnabas.model.errors import Malformed
from barnabas.model.ids import TopicPartition
from barnabas.storage.log import PartitionLog
from barnabas.storage.recovery import load
from barnabas.storage.settings import TopicSettings
from barnabas.storage.validate import Rules, validate
from barnabas.testing.world import InlineWorkers, SeededEntropy
from barnabas.wire.batch import HEADER_BYTES, crc_matches, iterate
from barnabas.wire.compression import Codec
from barnabas.wire.records import decode_all, encode_batch
from barnabas.world.memory import MemoryDisk
from barnabas.world.memory_file import FileNode
from barnabas.world.real import RealClock
from barnabas.world.world import World

SEGMENT_BYTES = 64 * 1024
BITS = SEGMENT_BYTES * 8
STRIDE = 1 if os.environ.get("BARNABAS_BIT_FLIPS") == "all" else 211  # prime, so that every bit of a byte has its turn
DIRECTORY = "/data/t-0"
LOG = f"{DIRECTORY}/{0:020d}.log"
UNPROTECTED = 17  # bytes of a header before its checksum: offset, length, epoch, magic
SETTINGS = TopicSettings(segment_bytes=SEGMENT_BYTES)


async def written(disk: MemoryDisk) -> bytes:
    """A log whose one segment has exactly 64 KiB: batches of every codec, of producers and of three epochs."""
    chance = Random(1)
    clock = RealClock()
    world = World(clock=clock, disk=disk, entropy=SeededEntropy(chance), workers=InlineWorkers(chance))
    disk.make_directory("/data")
    log = await PartitionLog.open(world, DIRECTORY, TopicPartition("t", 0), SETTINGS, topic_id=None, was_clean=False)
    rules, now_ms = Rules.of(SETTINGS), clock.wall_ms()
    number = 0
    while True:
        records = [
            (now_ms, b"key", chance.randbytes(chance.randrange(300)), ()) for _ in range(chance.randrange(1, 30))
        ]
        producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number} if number % 3 else {}
        batch = encode_batch(records, codec=Codec(number % 5), **producer)
        if log.size_bytes + len(batch) > SEGMENT_BYTES - 1000:
            break
        log.producers.clear()  # sequences are not what is tested here
        log.append_as_leader(validate(batch, rules, now_ms=now_ms), leader_epoch=number // 4, now_ms=now_ms)
        number += 1
    for extra in range(1000):  # a last batch that fills the segment to the byte
        batch = encode_batch([(now_ms, None, bytes(SEGMENT_BYTES - log.size_bytes - HEADER_BYTES - 10 + extra), ())])
        if len(batch) == SEGMENT_BYTES - log.size_bytes:
            log.append_as_leader(validate(batch, rules, now_ms=now_ms), leader_epoch=number // 4, now_ms=now_ms)
            break
    await log.flush()
    assert len(log.segments) == 1
    assert log.size_bytes == SEGMENT_BYTES
    return disk.read_all(LOG, size_bytes_max=SEGMENT_BYTES)


def node_of(disk: MemoryDisk, path: str) -> FileNode:
    node = disk._get(path)
    assert isinstance(node, FileNode)
    return node


def test_recovery_finds_every_flipped_bit() -> None:
    async def main() -> None:
        disk = MemoryDisk(RealClock())
        original = await written(disk)
        starts = [position for position, _ in iterate(original)]
        node = node_of(disk, LOG)
        for bit in range(0, BITS, STRIDE):
            if bit % 1024 == 0:
                disk.sync_all()  # or it would remember every change for a power cut
            node.content[:] = original
            node.content[bit // 8] ^= 1 << bit % 8
            loaded = await load(
                disk,
                DIRECTORY,
                SETTINGS,
                log_start_offset=0,
                recovery_point=0,
                was_clean=False,
                cleaned_offset=None,
                now_ms=0,
            )
            left = len(node.content)
            # The log ends before the damage, between two batches, and what is left is what was written.
            assert left <= bit // 8, f"bit {bit} was not found"
            assert left in starts, f"bit {bit}"
            assert node.content == original[:left], f"bit {bit}"
            damaged = max(start for start in starts if start <= bit // 8)
            assert left == damaged, f"bit {bit} cost more than the batch it is in"
            assert loaded.segments.size_bytes == left
            loaded.segments.active.close()

    asyncio.run(main())


def test_a_reader_never_takes_rot_for_records() -> None:
    """Without recovery, as after a clean stop: what a client reads fails its checksum, or has the right records."""

    async def main() -> None:
        original = await written(MemoryDisk(RealClock()))
        starts = [position for position, _ in iterate(original)]
        sizes = dict(zip(starts, [*starts[1:], SEGMENT_BYTES], strict=True))
        contents = {
            start: [record._replace(offset=0) for record in decode_all(original[start:end])]
            for start, end in sizes.items()
        }
        found = Counter[str]()
        for bit in range(0, BITS, STRIDE):
            start = max(each for each in starts if each <= bit // 8)
            batch = bytearray(original[start : sizes[start]])
            batch[bit // 8 - start] ^= 1 << bit % 8
            try:
                whole = list(iterate(batch))
                if whole and not crc_matches(batch, *whole[0]):
                    raise Malformed("a client checks this first")
                records = [record._replace(offset=0) for record in decode_all(bytes(batch))]
            except Malformed:
                found["refused"] += 1
                continue
            if not records:
                found["incomplete"] += 1  # its length says that more is to come: the client asks again
                continue
            assert bit // 8 - start < UNPROTECTED, f"bit {bit} is under the checksum"
            assert records == contents[start], f"bit {bit}"
            found["offset or epoch"] += 1
        print(f"{sum(found.values())} flips: {dict(found)}")
        assert found["refused"] > 0.95 * sum(found.values())

    asyncio.run(main())
