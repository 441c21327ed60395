"""The index of aborted transactions, and markers as records."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack

import pytest

from barnabas.model.errors import CorruptBatch
from barnabas.storage.index import CorruptIndex
from barnabas.storage.transactions import (
    AbortedRange,
    AbortedTransaction,
    Marker,
    decode_aborted,
    encode_aborted,
    overlapping,
    read_marker,
)
from barnabas.wire.batch import read_header
from barnabas.wire.records import encode_batch

FIRST = AbortedRange(1, 10, 20, 15)
SECOND = AbortedRange(2, 15, 30, 31)


def test_an_entry_is_34_bytes_and_comes_back() -> None:
    content = encode_aborted([FIRST, SECOND])
    assert content[:34] == pack(">hqqqq", 0, 1, 10, 20, 15)
    assert decode_aborted(content, base_offset=0) == [FIRST, SECOND]


def test_an_index_of_another_segment_is_refused() -> None:
    with pytest.raises(CorruptIndex):
        decode_aborted(encode_aborted([FIRST]), base_offset=21)
    with pytest.raises(CorruptIndex):
        decode_aborted(encode_aborted([FIRST])[:-1], base_offset=0)


@pytest.mark.parametrize(
    ("start", "end", "producer_ids", "is_complete"),
    [(0, 10, [], True), (0, 11, [1], True), (20, 25, [1, 2], True), (21, 25, [2], True), (0, 100, [1, 2], False)],
)
def test_what_overlaps_is_found(start: int, end: int, producer_ids: list[int], is_complete: bool) -> None:
    read = []

    def indexes() -> Iterator[list[AbortedRange]]:
        for index in ([FIRST, SECOND], []):
            read.append(index)
            yield index

    found = overlapping(indexes(), start, end)
    assert [aborted.producer_id for aborted in found] == producer_ids
    assert len(read) == (1 if is_complete else 2), "no index is read in vain"
    assert all(isinstance(aborted, AbortedTransaction) for aborted in found)


def marker_batch(key: bytes | None, value: bytes | None) -> bytearray:
    return encode_batch([(5, key, value, ())], producer_id=1, producer_epoch=0, is_transactional=True, is_control=True)


def test_markers_say_how_a_transaction_ended() -> None:
    for kind, is_abort in ((0, True), (1, False)):
        batch = marker_batch(pack(">hh", 0, kind), pack(">hi", 0, 9))
        assert read_marker(batch, 0, read_header(batch)) == Marker(is_abort, 9, 5)


def test_other_control_records_are_no_markers() -> None:
    batch = marker_batch(pack(">hh", 0, 2), b"leader change")
    assert read_marker(batch, 0, read_header(batch)) is None


@pytest.mark.parametrize(("key", "value"), [(None, b"x"), (b"\0", b"x"), (pack(">hh", 0, 1), b"\0")])
def test_a_marker_that_is_none_is_refused(key: bytes | None, value: bytes | None) -> None:
    batch = marker_batch(key, value)
    with pytest.raises(CorruptBatch):
        read_marker(batch, 0, read_header(batch))
