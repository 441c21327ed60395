"""Chunks as a broker sends them: whole batches that begin before the position, holes, markers, aborted records."""

from __future__ import annotations

import pytest

from barnabas.client.fetch.cursor import Chunk, Cursor
from barnabas.client.fetch.isolation import Visibility
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.errors import CorruptBatch
from barnabas.model.ids import TopicPartition
from barnabas.wire.batch import read_header
from barnabas.wire.records import encode_batch

PLACE = TopicPartition("t", 3)
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


def batch(base_offset: int, *values: bytes, producer_id: int = -1, marker: bytes | None = None) -> bytes:
    records = [(1000 + index, None, value, ()) for index, value in enumerate(values)]
    if marker is not None:
        records = [(1000, marker, b"\0\0\0\0\0\0", ())]
    is_transactional = producer_id >= 0
    return bytes(
        encode_batch(
            records,
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0 if is_transactional else -1,
            base_sequence=0 if is_transactional else -1,
            is_transactional=is_transactional,
            is_control=marker is not None,
        )
    )


def cursor_at(offset: int, data: bytes, *, aborted: list[tuple[int, int]] | None = None) -> Cursor:
    cursor = Cursor(PLACE, ConsumerSettings())
    cursor.seek(offset)
    cursor.add(Chunk(data, Visibility(aborted or ())), next_offset=1 << 40)
    return cursor


def values(cursor: Cursor, count: int = 100) -> list[bytes | None]:
    return [record.value for record in cursor.take(count)]


def test_records_come_in_order_and_move_the_position() -> None:
    cursor = cursor_at(0, batch(0, b"a", b"b") + batch(2, b"c"))
    assert values(cursor, 1) == [b"a"]
    assert cursor.position == 1
    assert values(cursor) == [b"b", b"c"]
    assert cursor.position == 3


def test_records_before_the_position_are_left_out() -> None:
    assert values(cursor_at(1, batch(0, b"a", b"b", b"c"))) == [b"b", b"c"]


def test_a_batch_that_is_cut_off_is_not_seen() -> None:
    data = batch(0, b"a") + batch(1, b"b")
    assert values(cursor_at(0, data[:-1])) == [b"a"]


def test_offsets_that_compaction_removed_are_skipped() -> None:
    data = bytearray(batch(0, b"a"))
    data[23:27] = (9).to_bytes(4, "big")  # the last offset delta stays although the records are gone
    from barnabas.wire.batch import seal

    seal(data, 0)
    cursor = cursor_at(0, bytes(data))
    assert values(cursor) == [b"a"]
    assert cursor.position == read_header(data).next_offset == 10


def test_markers_are_never_records_but_take_their_offset() -> None:
    cursor = cursor_at(0, batch(0, b"a", producer_id=7) + batch(1, producer_id=7, marker=COMMIT))
    assert values(cursor) == [b"a"]
    assert cursor.position == 2


def test_aborted_records_are_hidden_until_their_marker() -> None:
    data = (
        batch(0, b"gone", producer_id=7)
        + batch(1, b"kept", producer_id=8)
        + batch(2, producer_id=7, marker=ABORT)
        + batch(3, b"again", producer_id=7)
        + batch(4, producer_id=7, marker=COMMIT)
        + batch(5, b"plain")
    )
    assert values(cursor_at(0, data, aborted=[(0, 7)])) == [b"kept", b"again", b"plain"]


def test_a_second_aborted_transaction_of_a_producer_is_hidden_too() -> None:
    data = (
        batch(0, b"gone", producer_id=7)
        + batch(1, producer_id=7, marker=ABORT)
        + batch(2, b"kept", producer_id=7)
        + batch(3, producer_id=7, marker=COMMIT)
        + batch(4, b"gone", producer_id=7)
        + batch(5, producer_id=7, marker=ABORT)
    )
    cursor = cursor_at(0, data, aborted=[(4, 7), (0, 7)])
    assert values(cursor) == [b"kept"]
    assert cursor.position == 6


def test_reading_stops_at_the_end_it_was_given() -> None:
    cursor = cursor_at(0, batch(0, b"a", b"b", b"c"))
    cursor.end_offset = 2
    assert values(cursor) == [b"a", b"b"]
    assert cursor.is_at_end
    assert not cursor.wants_fetch(0.0)


def test_an_end_behind_hidden_records_is_reached() -> None:
    cursor = cursor_at(0, batch(0, b"a", producer_id=7) + batch(1, producer_id=7, marker=COMMIT))
    cursor.end_offset = 2
    assert values(cursor) == [b"a"]
    assert cursor.is_at_end


def test_a_batch_that_fails_its_checksum_is_an_error_and_is_not_skipped() -> None:
    data = bytearray(batch(0, b"a") + batch(1, b"b"))
    data[-1] ^= 1
    cursor = cursor_at(0, bytes(data))
    assert values(cursor) == [b"a"]
    assert isinstance(cursor.error, CorruptBatch)
    assert (cursor.position, cursor.fetch_offset) == (1, 1)


@pytest.mark.parametrize("chunks", [0, 1, 2])
def test_it_fetches_one_chunk_ahead(chunks: int) -> None:
    cursor = Cursor(PLACE, ConsumerSettings())
    cursor.seek(0)
    for _ in range(chunks):
        cursor.add(Chunk(batch(0, b"a"), Visibility()), next_offset=1)
    assert cursor.wants_fetch(0.0) is (chunks < 2)


def test_a_seek_throws_away_what_was_fetched() -> None:
    cursor = cursor_at(0, batch(0, b"a"))
    seeks = cursor.seeks
    cursor.seek(50)
    assert values(cursor) == []
    assert (cursor.position, cursor.fetch_offset, cursor.seeks) == (50, 50, seeks + 1)
