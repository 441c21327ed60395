"""The header of a batch: what it says, what is refused, and what a broker may change in place."""

from __future__ import annotations

import pytest

from barnabas.model.errors import CorruptBatch
from barnabas.wire import batch
from barnabas.wire.batch import HEADER_BYTES, LENGTH_OVERHEAD, BatchHeader
from barnabas.wire.compression import Codec
from barnabas.wire.records import encode_batch

RECORDS = [(1_000 + index, b"key", b"value", ()) for index in range(3)]


def a_batch(**facts: object) -> bytearray:
    return encode_batch(RECORDS, **facts)  # type: ignore[arg-type]


def a_header(**fields: int) -> BatchHeader:
    return batch.read_header(a_batch())._replace(**fields)


def test_a_header_tells_what_was_encoded() -> None:
    sealed = a_batch(
        base_offset=70,
        leader_epoch=4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=30,
        is_transactional=True,
        codec=Codec.LZ4,
    )
    header = batch.read_header(sealed)
    assert header.size_bytes == len(sealed) == header.length + LENGTH_OVERHEAD
    assert (header.base_offset, header.last_offset, header.next_offset) == (70, 72, 73)
    assert (header.leader_epoch, header.producer_id, header.producer_epoch) == (4, 9, 2)
    assert (header.base_sequence, header.last_sequence) == (30, 32)
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 1_002)
    assert header.record_count == 3
    assert header.codec is Codec.LZ4
    assert header.is_transactional
    assert not header.is_control
    assert not header.uses_append_time
    assert not header.has_delete_horizon
    assert batch.crc_matches(sealed, 0, header)


def test_control_and_append_time_are_bits_of_the_attributes() -> None:
    header = batch.read_header(a_batch(is_control=True, append_time=5_000))
    assert header.is_control
    assert header.uses_append_time
    assert header.max_timestamp == 5_000
    assert header._replace(attributes=0x40).has_delete_horizon


def test_the_next_offset_comes_from_the_header_even_when_compaction_removed_records() -> None:
    assert a_header(base_offset=10, last_offset_delta=9, record_count=1).next_offset == 20


def test_sequences_wrap_to_zero() -> None:
    largest = (1 << 31) - 1
    assert a_header(base_sequence=largest - 1, last_offset_delta=2).last_sequence == 0
    assert a_header(base_sequence=-1).last_sequence == -1


@pytest.mark.parametrize("magic", [-1, 0, 1, 3])
def test_another_magic_is_refused(magic: int) -> None:
    sealed = a_batch()
    sealed[16] = magic & 0xFF
    with pytest.raises(CorruptBatch, match="magic"):
        batch.read_header(sealed)


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 48])
def test_a_length_that_cannot_hold_a_header_is_refused(length: int) -> None:
    sealed = a_batch()
    sealed[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatch, match="length"):
        batch.read_header(sealed)


@pytest.mark.parametrize("position", [23, 57])
def test_negative_counts_are_refused(position: int) -> None:
    sealed = a_batch()
    sealed[position : position + 4] = b"\xff\xff\xff\xfe"
    with pytest.raises(CorruptBatch):
        batch.read_header(sealed)


@pytest.mark.parametrize("size", range(HEADER_BYTES))
def test_a_header_cut_anywhere_is_refused(size: int) -> None:
    with pytest.raises(CorruptBatch):
        batch.read_header(a_batch()[:size])


def test_a_codec_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="codec"):
        _ = a_header(attributes=5).codec


def test_every_changed_byte_after_the_checksum_breaks_it_and_none_before_it_does() -> None:
    sealed = a_batch(base_offset=1)
    header = batch.read_header(sealed)
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 0x40
        intact = position < batch.CHECKED_FROM  # the header in hand has the checksum
        assert batch.crc_matches(changed, 0, header) is intact, position
    assert not batch.crc_matches(sealed[:-1], 0, header)


def test_assigning_an_offset_and_an_epoch_needs_no_new_checksum() -> None:
    buffer = bytearray(b"before") + a_batch()
    batch.assign(buffer, 6, base_offset=1 << 40, leader_epoch=77)
    header = batch.read_header(buffer, 6)
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 77)
    assert batch.crc_matches(buffer, 6, header)
    assert header.size_bytes == len(buffer) - 6


def test_sealing_mends_the_checksum() -> None:
    buffer = bytearray(b"before") + a_batch()
    buffer[-2] ^= 1
    assert not batch.crc_matches(buffer, 6, batch.read_header(buffer, 6))
    batch.seal(memoryview(buffer), 6)
    assert batch.crc_matches(buffer, 6, batch.read_header(buffer, 6))


def test_iterating_ends_quietly_at_a_batch_that_is_cut_off() -> None:
    whole = a_batch(base_offset=0) + a_batch(base_offset=3)
    third = a_batch(base_offset=6)
    for size in range(len(third)):
        found = [header.base_offset for _, header in batch.iterate(whole + third[:size])]
        assert found == [0, 3]
    assert [position for position, _ in batch.iterate(whole)] == [0, len(whole) // 2]


def test_iterating_stops_loudly_at_garbage() -> None:
    with pytest.raises(CorruptBatch):
        list(batch.iterate(a_batch() + bytes(HEADER_BYTES)))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read_without_being_held(kind: type) -> None:
    sealed = a_batch()
    header = batch.read_header(kind(sealed))
    assert batch.crc_matches(kind(sealed), 0, header)
    sealed.append(0)  # a bytearray that is exported somewhere could not grow
