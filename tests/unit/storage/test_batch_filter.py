"""What cleaning makes of each batch, rule by rule."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack
from typing import Any

import pytest

from barnabas.model.errors import CorruptBatch
from barnabas.storage.batch_filter import BATCHES_PER_SLICE_MAX, BatchFilter, Kept, KeyCollector, LastBatch
from barnabas.storage.offset_map import OffsetMap
from barnabas.storage.transactions import AbortedRange
from barnabas.wire.batch import APPEND_TIME, HEADER_BYTES, BatchHeader, crc_matches, iterate, read_header, seal
from barnabas.wire.compression import Codec
from barnabas.wire.records import Record, decode_all, decode_batch, encode_batch

NOW_MS = 10**12
RETENTION_MS = 500
HORIZON_MS = NOW_MS + RETENTION_MS


def batch(*pairs: tuple[bytes | None, bytes | None], base: int = 0, time: int = 1000, **facts: Any) -> bytes:
    rows = [(time + index, key, value, (("h", b"x"),)) for index, (key, value) in enumerate(pairs)]
    return bytes(encode_batch(rows, base_offset=base, leader_epoch=4, **facts))


def marker(*, base: int, is_abort: bool = False, producer_id: int = 5, epoch: int = 0) -> bytes:
    row = (1000, pack(">hh", 0, not is_abort), pack(">hi", 0, 1), ())
    return bytes(
        encode_batch(
            [row],
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=epoch,
            is_transactional=True,
            is_control=True,
        )
    )


def transactional(*pairs: tuple[bytes, bytes | None], base: int, producer_id: int = 5) -> bytes:
    return batch(
        *pairs, base=base, producer_id=producer_id, producer_epoch=0, base_sequence=base, is_transactional=True
    )


class Cleaning:
    """Both passes over one piece of a log."""

    def __init__(
        self,
        log: bytes,
        *,
        aborted: Iterable[AbortedRange] = (),
        last: dict[int, LastBatch] | None = None,
        start: int = 0,
        now_ms: int = NOW_MS,
        end_offset: int = -1,
        buffer_bytes: int = 1 << 20,
    ) -> None:
        self.log = log
        aborted = list(aborted)
        offsets = OffsetMap(size_bytes_max=buffer_bytes, seed=bytes(16))
        self.noted = KeyCollector(offsets, aborted, start_offset=start).note(log, 0)
        self.latest_offset = offsets.latest_offset
        batches = BatchFilter(offsets, aborted, last or {}, now_ms=now_ms, delete_retention_ms=RETENTION_MS)
        batches.end_offset = end_offset
        self.kept: Kept = batches.keep(log, 0)
        assert self.kept.consumed == len(log)
        self.result = bytes(self.kept.records)
        self.headers = [header for _, header in iterate(self.result)]
        assert self.headers == self.kept.headers
        for position, header in iterate(self.result):
            assert crc_matches(self.result, position, header)
        offsets.close()

    @property
    def records(self) -> list[Record]:
        return decode_all(self.result)

    @property
    def offsets(self) -> list[int]:
        return [record.offset for record in self.records]


def identity(header: BatchHeader) -> tuple[int, ...]:
    """What never changes of a batch."""
    return (
        header.base_offset,
        header.last_offset,
        header.leader_epoch,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_sequence,
    )


def test_a_log_without_duplicates_stays_byte_for_byte() -> None:
    log = batch((b"a", b"1"), (b"b", b"2")) + batch((b"c", b"3"), base=2, codec=Codec.GZIP)
    done = Cleaning(log)
    assert done.result == log
    assert not done.kept.is_changed


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_with_fewer_records_keeps_all_else(codec: Codec) -> None:
    first = batch(
        (b"a", b"1"),
        (b"b", b"2" * 500),
        (b"c", b"3"),
        base=10,
        codec=codec,
        producer_id=3,
        producer_epoch=1,
        base_sequence=70,
    )
    log = first + batch((b"a", b"x"), (b"c", b"x"), base=13, time=5000)
    done = Cleaning(log)
    assert done.kept.is_changed
    assert done.offsets == [11, 13, 14]
    before, after = read_header(first), done.headers[0]
    assert identity(after) == identity(before)
    assert after.codec is codec
    assert (after.record_count, after.base_timestamp, after.max_timestamp) == (1, 1000, 1001)
    assert done.records[0] == decode_batch(first)[1]


def test_a_batch_without_records_goes() -> None:
    done = Cleaning(batch((b"a", b"1")) + batch((b"a", b"2"), base=1))
    assert [header.base_offset for header in done.headers] == [1]


def test_records_without_a_key_go() -> None:
    assert Cleaning(batch((None, b"1"), (b"a", b"2"), (None, None))).offsets == [1]


def test_append_time_stays_the_time_of_the_batch() -> None:
    first = batch((b"a", b"1"), (b"b", b"2"), append_time=7777)
    done = Cleaning(first + batch((b"a", b"x"), base=2))
    assert done.headers[0].attributes & APPEND_TIME
    assert (done.headers[0].max_timestamp, done.records[0].timestamp) == (7777, 7777)


# --- tombstones -------------------------------------------------------------------------------------------------------


def test_a_tombstone_is_dated_first_and_removed_once_its_time_has_passed() -> None:
    log = batch((b"a", b"1"), (b"b", b"2")) + batch((b"a", None), base=2, codec=Codec.LZ4)
    dated = Cleaning(log)
    assert dated.offsets == [1, 2]
    header = dated.headers[1]
    assert header.has_delete_horizon
    assert header.base_timestamp == HORIZON_MS
    assert dated.records[1] == decode_batch(log, log.index(batch((b"a", None), base=2, codec=Codec.LZ4)))[0]
    waiting = Cleaning(dated.result, now_ms=HORIZON_MS - 1)
    assert waiting.result == dated.result
    gone = Cleaning(dated.result, now_ms=HORIZON_MS)
    assert gone.offsets == [1]


def test_a_date_is_set_once() -> None:
    dated = Cleaning(batch((b"a", None), (b"b", b"1"), (b"c", b"2")))
    assert dated.headers[0].base_timestamp == HORIZON_MS
    again = Cleaning(dated.result + batch((b"b", b"x"), base=3), now_ms=NOW_MS + 100)
    assert again.headers[0].base_timestamp == HORIZON_MS
    assert [(record.offset, record.timestamp) for record in again.records[:2]] == [(0, 1000), (2, 1002)]


def test_a_tombstone_that_was_overtaken_goes_at_once() -> None:
    assert Cleaning(batch((b"a", None)) + batch((b"a", b"1"), base=1)).offsets == [1]


def test_a_retention_without_end_is_no_wrong_date() -> None:
    offsets = OffsetMap(size_bytes_max=1 << 20, seed=bytes(16))
    log = batch((b"a", None))
    KeyCollector(offsets, (), start_offset=0).note(log, 0)
    kept = BatchFilter(offsets, (), {}, now_ms=NOW_MS, delete_retention_ms=2**63 - 1).keep(log, 0)
    assert kept.headers[0].base_timestamp == 1 << 62
    assert decode_batch(kept.records)[0].timestamp == 1000


# --- the bound of the map ---------------------------------------------------------------------------------------------


def test_what_lies_below_the_start_is_compared_but_not_noted() -> None:
    log = batch((b"a", b"1"), (b"b", b"2")) + batch((b"b", b"3"), (b"c", b"4"), base=2)
    done = Cleaning(log + batch((b"a", b"5"), base=4), start=3)
    # Of the two that are noted, only the key at 4 is there before.
    assert done.offsets == [1, 2, 3, 4]


def test_a_full_map_leaves_the_rest_for_the_next_round() -> None:
    first = batch(*((b"%d" % number, b"") for number in range(6)))
    second = batch(*((b"%d" % number, b"") for number in range(5, 12)), base=6)
    done = Cleaning(first + second, buffer_bytes=24 * 8)
    assert done.noted.is_full
    assert done.noted.consumed == len(first)
    assert done.latest_offset == 5
    # A later record is known of the last key of the first batch; all of the second batch stays.
    assert done.offsets == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]


# --- producers --------------------------------------------------------------------------------------------------------


def test_the_last_batch_of_an_active_producer_stays_without_its_records() -> None:
    first = batch(
        (b"a", b"1"), (b"a", b"2"), base=4, producer_id=3, producer_epoch=2, base_sequence=9, codec=Codec.ZSTD
    )
    log = first + batch((b"a", b"3"), base=6)
    assert Cleaning(log).offsets == [6]
    assert len(Cleaning(log).headers) == 1
    done = Cleaning(log, last={3: LastBatch(5, 2)})
    empty = done.headers[0]
    assert identity(empty) == identity(read_header(first))
    assert (empty.record_count, empty.size_bytes, empty.max_timestamp) == (0, HEADER_BYTES, 1001)
    assert empty.codec is Codec.NONE
    assert not empty.has_delete_horizon
    assert Cleaning(done.result, last={3: LastBatch(5, 2)}).result == done.result
    assert Cleaning(done.result, last={3: LastBatch(50, 2)}).headers[0].base_offset == 6


def test_the_marker_of_a_producer_without_data_stays_as_long_as_its_epoch_is_the_last() -> None:
    log = marker(base=0, epoch=7) + batch((b"a", b"1"), base=1)
    dated = Cleaning(log).result
    late = HORIZON_MS + 1
    assert [header.base_offset for header in Cleaning(dated, now_ms=late).headers] == [1]
    kept = Cleaning(dated, now_ms=late, last={5: LastBatch(-1, 7)}).headers[0]
    assert (kept.base_offset, kept.record_count, kept.is_control, kept.producer_epoch) == (0, 0, True, 7)
    assert len(Cleaning(dated, now_ms=late, last={5: LastBatch(-1, 8)}).headers) == 1


def test_the_last_batch_of_a_segment_stays_so_that_its_end_is_known() -> None:
    log = batch((b"a", b"1")) + batch((b"a", b"2"), base=1) + batch((None, b"3"), base=2)
    done = Cleaning(log, end_offset=3)
    assert [(header.base_offset, header.record_count) for header in done.headers] == [(1, 1), (2, 0)]


# --- transactions -----------------------------------------------------------------------------------------------------


def test_aborted_data_goes_at_once_and_hides_nothing() -> None:
    log = batch((b"a", b"1")) + transactional((b"a", b"2"), (b"b", b"3"), base=1) + marker(base=3, is_abort=True)
    aborted = [AbortedRange(5, 1, 3, 4)]
    done = Cleaning(log, aborted=aborted)
    assert [header.base_offset for header in done.headers] == [0, 3]
    # The marker stays for now, and readers are still told: the data was there when this round began.
    assert not done.headers[1].has_delete_horizon
    assert done.kept.aborted == aborted


def test_committed_data_counts() -> None:
    log = batch((b"a", b"1")) + transactional((b"a", b"2"), base=1) + marker(base=2)
    done = Cleaning(log)
    assert [header.base_offset for header in done.headers] == [1, 2]
    assert not done.headers[1].has_delete_horizon


@pytest.mark.parametrize("is_abort", [True, False])
def test_a_marker_without_data_is_dated_and_then_goes(is_abort: bool) -> None:
    log = marker(base=3, is_abort=is_abort) + batch((b"a", b"1"), base=4)
    aborted = [AbortedRange(5, 1, 3, 4)] if is_abort else []
    dated = Cleaning(log, aborted=aborted)
    assert dated.headers[0].has_delete_horizon
    assert dated.headers[0].base_timestamp == HORIZON_MS
    assert dated.kept.aborted == []
    assert decode_batch(dated.result)[0].timestamp == 1000
    assert Cleaning(dated.result, now_ms=HORIZON_MS - 1).result == dated.result
    assert [header.base_offset for header in Cleaning(dated.result, now_ms=HORIZON_MS).headers] == [4]


def test_a_dated_marker_stays_if_data_is_met_after_all() -> None:
    dated = Cleaning(marker(base=3)).result
    log = transactional((b"a", b"1"), base=1) + dated
    assert [header.base_offset for header in Cleaning(log, now_ms=HORIZON_MS).headers] == [1, 3]


def test_an_aborted_batch_that_stays_for_its_producer_keeps_its_marker() -> None:
    log = transactional((b"a", b"2"), base=1) + marker(base=2, is_abort=True)
    aborted = [AbortedRange(5, 1, 2, 3)]
    last = {5: LastBatch(1, 0)}
    once = Cleaning(log, aborted=aborted, last=last)
    assert [(header.base_offset, header.record_count) for header in once.headers] == [(1, 0), (2, 1)]
    twice = Cleaning(once.result, aborted=once.kept.aborted, last=last)
    assert twice.result == once.result
    assert twice.kept.aborted == aborted


def test_what_a_producer_writes_after_an_aborted_transaction_is_not_void() -> None:
    log = (
        transactional((b"a", b"1"), base=0)
        + marker(base=1, is_abort=True)
        + transactional((b"a", b"2"), base=2)
        + marker(base=3)
    )
    assert Cleaning(log, aborted=[AbortedRange(5, 0, 1, 2)]).offsets == [1, 2, 3]
    # Even if its marker is missing.
    rest = log[len(transactional((b"a", b"1"), base=0)) + len(marker(base=1)) :]
    assert Cleaning(rest, aborted=[AbortedRange(5, 0, 1, 2)]).offsets == [2, 3]


def test_two_producers_do_not_mix() -> None:
    log = (
        transactional((b"a", b"1"), base=0, producer_id=5)
        + transactional((b"b", b"2"), base=1, producer_id=6)
        + marker(base=2, producer_id=6)
        + transactional((b"c", b"3"), base=3, producer_id=5)
        + marker(base=4, producer_id=5, is_abort=True)
    )
    assert Cleaning(log, aborted=[AbortedRange(5, 0, 4, 5)]).offsets == [1, 2, 4]


# --- slices and rot ---------------------------------------------------------------------------------------------------


def test_a_slice_is_bounded_and_the_rest_comes_later() -> None:
    log = b"".join(batch((b"%d" % number, b""), base=number) for number in range(BATCHES_PER_SLICE_MAX + 7))
    offsets = OffsetMap(size_bytes_max=1 << 20, seed=bytes(16))
    collector = KeyCollector(offsets, (), start_offset=0)
    first = collector.note(log, 0)
    assert first.batch_count == BATCHES_PER_SLICE_MAX
    second = collector.note(log, first.consumed)
    assert first.consumed + second.consumed == len(log)
    assert offsets.latest_offset == BATCHES_PER_SLICE_MAX + 6


def test_a_batch_that_is_cut_off_is_left_alone() -> None:
    log = batch((b"a", b"1"))
    offsets = OffsetMap(size_bytes_max=1 << 20, seed=bytes(16))
    assert KeyCollector(offsets, (), start_offset=0).note(log[:-1], 0).consumed == 0


def test_a_rotten_batch_decides_nothing() -> None:
    log = bytearray(batch((b"a", b"1")) + batch((b"a", b"2"), base=1))
    log[-3] ^= 1
    with pytest.raises(CorruptBatch):
        Cleaning(bytes(log))


def test_garbage_with_a_right_checksum_is_no_reason_to_delete() -> None:
    log = bytearray(batch((b"a", b"1"), (b"b", b"2")))
    log[HEADER_BYTES] = 0x7F
    seal(log, 0)
    with pytest.raises(CorruptBatch):
        Cleaning(bytes(log))
