"""The record codec, compiled and interpreted: both are held to the same words."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from record_bytes import COMPILED, INT64_MAX, SAMPLE, a_record, decode, interpreted, payload_of

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch, record_codec, records
from barnabas.wire.compression import Codec
from barnabas.wire.records import Record


def test_records_are_decoded_as_written(twin: Any) -> None:
    found = decode(twin, payload_of(SAMPLE), 4, base_offset=50, base_timestamp=1_000)
    assert found == SAMPLE
    assert all(type(record) is Record for record in found)
    gc.collect()
    assert found == SAMPLE  # the collector has no business with the compiled ones, which hold no cycles


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(b"<" + data + b">")[1:-1]])
def test_any_buffer_will_do(twin: Any, kind: Callable[[bytes], Any]) -> None:
    assert decode(twin, kind(payload_of(SAMPLE)), 4, base_offset=50, base_timestamp=1_000) == SAMPLE
    assert twin.codec.check(kind(payload_of(SAMPLE)), 4, 1_000, False)[2]


def test_records_are_encoded_as_the_format_says(twin: Any) -> None:
    plain, base, largest = twin.encoder.encode([record[1:] for record in SAMPLE], 7)
    assert type(plain) is bytearray
    assert plain == bytes(7) + payload_of(SAMPLE)
    assert (base, largest) == (1_000, 5_000_000_000)


def test_append_time_is_the_time_of_every_record(twin: Any) -> None:
    found = decode(twin, payload_of(SAMPLE), 4, attributes=batch.APPEND_TIME, max_timestamp=77)
    assert {record.timestamp for record in found} == {77}


def test_many_records_of_growing_size_are_encoded_whole(twin: Any) -> None:
    unplaced = [(index, b"k" * (index % 70), b"v" * (index * 3), [("h", b"c" * index)]) for index in range(2_000)]
    plain, _, _ = twin.encoder.encode(unplaced, 0)
    found = decode(twin, bytes(plain), 2_000)
    assert [(r.timestamp, r.key, r.value, list(r.headers)) for r in found] == unplaced


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_keys_and_values_may_be_other_buffers(twin: Any, kind: type) -> None:
    plain, _, _ = twin.encoder.encode([(0, kind(b"key"), kind(b"value"), (("h", kind(b"content")),))], 0)
    assert plain == a_record(headers=((b"h", b"content"),))


@pytest.mark.parametrize("wrong", [5, "text", 2.5, [1]])
def test_what_is_no_buffer_is_refused(twin: Any, wrong: object) -> None:
    for unplaced in ((0, wrong, b"", ()), (0, b"", wrong, ()), (0, b"", b"", (("h", wrong),))):
        with pytest.raises(TypeError):
            twin.encoder.encode([unplaced], 0)


@pytest.mark.parametrize("timestamp", [1 << 62, -(1 << 62) - 1, 1 << 70])
def test_a_timestamp_beyond_reason_is_refused(twin: Any, timestamp: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        twin.encoder.encode([(timestamp, None, None, ())], 0)


def test_headers_that_change_their_mind_write_nothing_beyond_their_place(twin: Any) -> None:
    class Fickle(list[Any]):
        turn = 0

        def __iter__(self) -> Any:
            self.turn += 1
            return iter([("name", b"x" * 100_000 * self.turn)])

    fickle = Fickle([0])
    if twin is COMPILED:
        with pytest.raises(ValueError, match="changed"):
            twin.encoder.encode([(0, b"", b"", fickle)], 0)
    else:
        twin.encoder.encode([(0, b"", b"", fickle)], 0)


def test_check_finds_the_largest_timestamp_and_its_first_record(twin: Any) -> None:
    payload = b"".join(a_record(index, delta) for index, delta in enumerate([5, -3, 90, 90, 2]))
    assert twin.codec.check(payload, 5, 1_000, False) == (90, 2, True, ())
    only_negative = a_record(0, -7) + a_record(1, -5)
    assert twin.codec.check(only_negative, 2, 1_000, False)[:2] == (-5, 1)


@pytest.mark.parametrize("deltas", [(0, 2, 3), (1, 2, 3), (0, 0, 0), (2, 1, 0), (0, 1, 3)])
def test_gaps_between_offsets_are_told(twin: Any, deltas: tuple[int, ...]) -> None:
    payload = b"".join(a_record(delta) for delta in deltas)
    assert twin.codec.check(payload, 3, 0, False)[2] is False
    assert [record.offset for record in decode(twin, payload, 3, base_offset=10)] == [10 + delta for delta in deltas]


def test_records_without_a_key_are_told_only_when_keys_are_required(twin: Any) -> None:
    payload = b"".join(a_record(index, key=None if index % 3 == 0 else b"") for index in range(7))
    assert twin.codec.check(payload, 7, 0, True)[3] == (0, 3, 6)
    assert twin.codec.check(payload, 7, 0, False)[3] == ()
    many = b"".join(a_record(index, key=None) for index in range(3_000))
    assert len(twin.codec.check(many, 3_000, 0, True)[3]) == record_codec.KEYLESS_MAX


def test_a_batch_that_compaction_has_emptied_is_sound(twin: Any) -> None:
    assert twin.codec.check(b"", 0, 5, True) == (-INT64_MAX, -1, True, ())
    assert decode(twin, b"", 0) == []
    facts = records.check(b"", record_count=0, base_timestamp=5, keys_required=False)
    assert facts.max_timestamp == -1


def test_decoding_leaves_the_collector_as_it_was() -> None:
    sealed = records.encode_batch([(0, None, None, ())])
    assert gc.isenabled()
    records.decode_batch(sealed)
    assert gc.isenabled()
    gc.disable()
    try:
        records.decode_batch(sealed)
        assert not gc.isenabled()
    finally:
        gc.enable()
    sealed[61] = 0
    with pytest.raises(CorruptBatch):
        records.decode_batch(sealed)
    assert gc.isenabled()


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_is_decoded_from_where_it_lies(codec: Codec) -> None:
    unplaced = [tuple(record[1:]) for record in SAMPLE]
    sealed = records.encode_batch(unplaced, base_offset=50, codec=codec)
    assert records.decode_batch(b"before" + sealed + b"after", 6) == SAMPLE
    assert records.decode_all(sealed + sealed + sealed[:-1]) == SAMPLE * 2


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_decompresses_to_more_than_allowed_is_refused(codec: Codec) -> None:
    sealed = records.encode_batch([(0, None, bytes(100_000), ())], codec=codec)
    if codec is not Codec.NONE:
        with pytest.raises(CorruptBatch):
            records.decode_batch(sealed, size_bytes_max=99_999)
    assert len(records.decode_batch(sealed, size_bytes_max=100_100)) == 1


def test_a_batch_cut_off_or_placed_beyond_the_last_offset_is_refused() -> None:
    sealed = records.encode_batch([(0, None, b"value", ())])
    with pytest.raises(CorruptBatch, match="cut off"):
        records.decode_batch(sealed[:-1])
    for base_offset in (-1, INT64_MAX):
        batch.assign(sealed, 0, base_offset=base_offset, leader_epoch=0)
        with pytest.raises(CorruptBatch, match="offset"):
            records.decode_batch(sealed)


def test_a_batch_of_nothing_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="at least one"):
        records.encode_batch([])


def test_facts_are_given_in_absolute_time() -> None:
    facts = records.check(a_record(0, 5) + a_record(1, 9), record_count=2, base_timestamp=100, keys_required=True)
    assert facts == (109, 1, True, ())


def test_the_source_runs_where_cython_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cython", None)
    alone = SimpleNamespace(codec=interpreted("record_codec"), encoder=interpreted("record_encoder"))
    assert not alone.codec.COMPILED
    assert not alone.encoder.COMPILED
    plain, _, _ = alone.encoder.encode([record[1:] for record in SAMPLE], 0)
    assert decode(alone, bytes(plain), 4, base_offset=50, base_timestamp=1_000) == SAMPLE


def test_records_carry_their_place_if_told_to(twin: Any) -> None:
    sealed = records.encode_batch([(5, b"k", b"v", (("h", None),))], base_offset=7)
    header = batch.read_header(sealed)
    (found,) = twin.codec.decode(memoryview(sealed)[batch.HEADER_BYTES :], header, tuple, ("orders", 3))
    assert found == ("orders", 3, 7, 5, b"k", b"v", (("h", None),))
