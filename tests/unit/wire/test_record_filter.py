"""The loops of compaction, compiled and interpreted: both are held to the same words."""

from __future__ import annotations

import random
from array import array
from struct import pack, unpack
from typing import Any

import pytest
from record_bytes import interpreted

from barnabas.model.errors import CorruptBatch
from barnabas.wire import record_filter
from barnabas.wire.batch import HEADER_BYTES, read_header
from barnabas.wire.records import Record, decode_batch, encode_batch

SEED = (7, 9)
SLOTS = 64
INTERPRETED = interpreted("record_filter")


@pytest.fixture(params=["compiled", "interpreted"])
def twin(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        assert not INTERPRETED.COMPILED
        return INTERPRETED
    if not record_filter.COMPILED:
        pytest.skip("the record filter is not compiled here")
    return record_filter


def table(slots: int = SLOTS) -> array[int]:
    return array("Q", bytes(8 * 3 * slots))


def payload(*records: tuple[bytes | None, bytes | None], time: int = 1000) -> bytes:
    rows = [(time + 10 * index, key, value, (("h", b"x"),)) for index, (key, value) in enumerate(records)]
    return bytes(encode_batch(rows)[HEADER_BYTES:])


def decoded(plain: bytes, count: int, *, base_timestamp: int = 1000) -> list[Record]:
    """What a reader finds in records behind a header that is made for them."""
    head = bytearray(encode_batch([(0, b"k", b"v", ())])[:HEADER_BYTES])
    head[8:12] = pack(">i", HEADER_BYTES + len(plain) - 12)
    head[27:35] = pack(">q", base_timestamp)
    head[57:61] = pack(">i", count)
    assert read_header(head).base_timestamp == base_timestamp
    return decode_batch(bytes(head) + plain)


def put(twin: Any, words: Any, plain: bytes, count: int, *, base: int = 0, start: int = 0, room: int = 50) -> Any:
    return twin.put_keys(plain, count, base, start, words, room, SEED)


def mark(twin: Any, words: Any, plain: bytes, count: int, *, base: int = 0, latest: int = 10**6, **more: bool) -> Any:
    keep = bytearray(count)
    facts = twin.mark_kept(plain, base, latest, more.get("keeps_tombstones", True), words, SEED, keep)
    return list(keep), facts


def test_the_compiled_hash_is_siphash() -> None:
    if not record_filter.COMPILED:
        pytest.skip("the record filter is not compiled here")
    seed = unpack("<QQ", bytes(range(16)))
    # The first and the ninth of the vectors that its authors publish for 128 bits.
    assert pack("<QQ", *record_filter.hash_of(b"", *seed)).hex() == "a3817f04ba25a8e66df67214c7550293"
    assert len({record_filter.hash_of(bytes(range(size)), *seed) for size in range(64)}) == 64


def test_the_seed_changes_the_hash(twin: Any) -> None:
    assert twin.hash_of(b"key", 1, 2) == twin.hash_of(b"key", 1, 2)
    assert len({twin.hash_of(b"key", low, high) for low in range(4) for high in range(4)}) == 16


def test_the_last_record_of_a_key_stays(twin: Any) -> None:
    words = table()
    plain = payload((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    assert put(twin, words, plain, 3, base=100) == (2, True)
    assert mark(twin, words, plain, 3, base=100) == ([0, 1, 1], (2, 0, 10, 20))


def test_keys_below_the_start_are_not_noted_but_asked_for(twin: Any) -> None:
    words = table()
    plain = payload((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    assert put(twin, words, plain, 3, base=100, start=101) == (2, True)
    older = payload((b"a", b"0"), (b"c", b"0"))
    assert mark(twin, words, older, 2, base=90)[0] == [0, 1]


def test_what_lies_above_the_map_stays(twin: Any) -> None:
    words = table()
    plain = payload((b"a", b"1"), (None, b"2"), (b"a", b"3"), (None, b"4"))
    put(twin, words, plain, 4)
    assert mark(twin, words, plain, 4, latest=2)[0] == [0, 0, 1, 1]


def test_tombstones_stay_until_their_time_has_come(twin: Any) -> None:
    words = table()
    plain = payload((b"a", b"1"), (b"a", None), (b"b", b""))
    put(twin, words, plain, 3)
    assert mark(twin, words, plain, 3) == ([0, 1, 1], (2, 1, 10, 20))
    assert mark(twin, words, plain, 3, keeps_tombstones=False) == ([0, 0, 1], (1, 0, 20, 20))


def test_a_full_map_stops_before_the_next_new_key(twin: Any) -> None:
    words = table()
    plain = payload((b"a", b""), (b"b", b""), (b"a", b""), (b"c", b""))
    assert put(twin, words, plain, 4, room=2) == (2, False)
    assert put(twin, words, plain, 4, room=1) == (1, True)


def test_slots_survive_the_move_into_a_larger_table(twin: Any) -> None:
    small, large = table(7), table(40)
    plain = payload(*((b"%d" % number, b"") for number in range(6)))
    assert put(twin, small, plain, 6) == (6, True)
    twin.move_slots(small, large)
    assert mark(twin, large, plain, 6)[0] == [1] * 6
    assert put(twin, large, plain, 6) == (0, True)


def test_kept_records_are_copied_as_they_are(twin: Any) -> None:
    plain = payload((b"a", b"1" * 200), (b"b", b"2"), (b"c", None), (b"", b"4"))
    copy = twin.copy_kept(plain, bytearray([1, 0, 1, 1]), 5, 0)
    assert copy[:5] == bytes(5)
    found = decoded(bytes(copy[5:]), 3)
    assert found == [record for record in decoded(plain, 4) if record.key != b"b"]
    assert bytes(twin.copy_kept(plain, bytearray([1] * 4), 0, 0)) == plain


@pytest.mark.parametrize("base", [1000, 0, 5 * 10**12, -(2**61), 2**62])
def test_records_keep_their_time_when_the_base_moves(twin: Any, base: int) -> None:
    plain = payload((b"a", b"1" * 200), (b"b", b"2"), (b"c", None))
    copy = bytes(twin.copy_kept(plain, bytearray([1, 1, 1]), 0, 1000 - base))
    assert decoded(copy, 3, base_timestamp=base) == decoded(plain, 3)


@pytest.mark.parametrize("seed", range(40))
def test_no_bytes_make_it_read_or_write_elsewhere(twin: Any, seed: int) -> None:
    chance = random.Random(seed)
    plain = bytearray(payload(*((b"%d" % chance.randrange(5), chance.randbytes(9)) for _ in range(8))))
    for _ in range(chance.randrange(1, 4)):
        plain[chance.randrange(len(plain))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    cut = bytes(plain[: chance.randrange(len(plain) + 1)])
    for work in (
        lambda: put(twin, table(), cut, 8),
        lambda: mark(twin, table(), cut, 8),
        lambda: twin.copy_kept(cut, bytearray([1] * 8), 61, 12345),
    ):
        try:
            work()
        except CorruptBatch:
            continue


@pytest.mark.parametrize("count", [-1, 9, 2**40])
def test_a_count_that_is_a_lie_is_refused(twin: Any, count: int) -> None:
    with pytest.raises(CorruptBatch):
        put(twin, table(), b"\x0c" + bytes(8), count)
