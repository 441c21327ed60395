"""The map of a round: exact while it grows, bounded in memory, and honest when it is full."""

from __future__ import annotations

import pytest

from barnabas.storage.offset_map import SLOT_BYTES, OffsetMap
from barnabas.wire.batch import HEADER_BYTES
from barnabas.wire.records import encode_batch

SEED = bytes(range(16))


def payload(first: int, count: int) -> bytes:
    return bytes(
        encode_batch([(0, b"key %d" % number, b"", ()) for number in range(first, first + count)])[HEADER_BYTES:]
    )


def put(offsets: OffsetMap, first: int, count: int, base_offset: int) -> bool:
    return offsets.put(payload(first, count), record_count=count, base_offset=base_offset, start_offset=0)


def kept(offsets: OffsetMap, first: int, count: int, base_offset: int) -> int:
    keep = bytearray(count)
    found = offsets.mark(payload(first, count), base_offset=base_offset, keeps_tombstones=True, keep=keep)
    return found[0]


def test_a_map_grows_and_forgets_nothing() -> None:
    offsets = OffsetMap(size_bytes_max=1 << 20, seed=SEED)
    first_bytes = offsets.size_bytes
    for base in range(0, 10_000, 500):
        assert put(offsets, base, 500, base)
    assert offsets.count == 10_000
    assert offsets.size_bytes > first_bytes
    offsets.latest_offset = 9_999
    assert kept(offsets, 0, 5_000, 0) == 5_000
    assert put(offsets, 0, 100, 10_000)
    offsets.latest_offset = 10_099
    assert offsets.count == 10_000
    assert kept(offsets, 0, 5_000, 0) == 4_900
    offsets.close()


@pytest.mark.parametrize("size_bytes_max", [24 * 10, 24 * 5_000, 1 << 20])
def test_a_map_stays_within_its_memory_and_says_when_it_is_full(size_bytes_max: int) -> None:
    offsets = OffsetMap(size_bytes_max=size_bytes_max, seed=SEED)
    number = 0
    while put(offsets, number, 10, number):
        number += 10
        assert offsets.size_bytes <= size_bytes_max
    # While it grows the old table is there too; a third of the memory is never used, and a tenth stays free.
    assert offsets.count >= 0.9 * (size_bytes_max // SLOT_BYTES) / 3 - 1
    assert offsets.count * SLOT_BYTES <= size_bytes_max
    # Known keys are taken even by a full one.
    assert put(offsets, 0, min(offsets.count, 1000), 10**6)
    offsets.close()
