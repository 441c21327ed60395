"""Idempotence: what is a duplicate, what is out of order, who is fenced; and what transactions hold back."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.storage.producers import Producers
from barnabas.storage.transactions import Marker
from barnabas.wire.batch import BatchHeader, read_header
from barnabas.wire.records import encode_batch

SEQUENCE_MAX = 2**31 - 1
PID = 7


def header(
    sequence: int, *, count: int = 1, epoch: int = 0, is_transactional: bool = False, at: int = 100
) -> BatchHeader:
    batch = encode_batch(
        [(at, None, b"x", ())] * count,
        producer_id=PID,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )
    return read_header(batch)


def marker(epoch: int = 0, *, coordinator_epoch: int = 0, is_abort: bool = False) -> tuple[BatchHeader, Marker]:
    batch = encode_batch(
        [(100, b"k", b"v", ())], producer_id=PID, producer_epoch=epoch, is_transactional=True, is_control=True
    )
    return read_header(batch), Marker(is_abort, coordinator_epoch, 100)


class Log:
    """Just enough of a log: offsets that rise."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.end_offset = 0

    def append(self, sequence: int, **options: Any) -> int | None:
        """The base offset; for a duplicate, that of the first time."""
        batch = header(sequence, **options)
        repeated = self.producers.check(batch)
        if repeated is not None:
            return repeated.first_offset
        base_offset = self.end_offset
        self.producers.append(batch, base_offset)
        self.end_offset += batch.record_count
        return base_offset


def refused(error: WireError, log: Log, sequence: int, **options: Any) -> None:
    before = log.end_offset
    with pytest.raises(ApiError) as raised:
        log.append(sequence, **options)
    assert raised.value.error is error
    assert log.end_offset == before


def test_sequences_must_follow_each_other() -> None:
    log = Log()
    assert log.append(0, count=3) == 0
    assert log.append(3, count=2) == 3
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, 6)
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, 4)
    assert log.append(5) == 5


def test_the_last_five_batches_are_known_again() -> None:
    log = Log()
    for sequence in range(8):
        log.append(sequence)
    for sequence in range(3, 8):
        assert log.append(sequence) == sequence
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, 2)


def test_a_duplicate_must_match_from_first_to_last_sequence() -> None:
    log = Log()
    log.append(0, count=3)
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, 0, count=2)
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, 1, count=2)
    assert log.append(0, count=3) == 0


def test_sequences_wrap_at_the_largest_int32() -> None:
    log = Log()
    log.append(SEQUENCE_MAX - 1, count=2)
    assert log.append(0) == 2
    assert log.append(SEQUENCE_MAX - 1, count=2) == 0
    log.append(1)
    other = Log()
    assert other.append(SEQUENCE_MAX, count=3) == 0  # wraps within the batch
    assert other.append(2) == 3
    assert other.append(SEQUENCE_MAX, count=3) == 0


def test_an_unknown_producer_may_start_anywhere() -> None:
    assert Log().append(12345) == 0


def test_an_unknown_producer_starts_a_v2_transaction_at_zero() -> None:
    producers = Producers()
    with pytest.raises(ApiError) as raised:
        producers.check(header(5, is_transactional=True), transaction_version=2)
    assert raised.value.error is errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(header(0, is_transactional=True), transaction_version=2) is None


def test_a_new_epoch_starts_at_zero() -> None:
    log = Log()
    log.append(0)
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, 1, epoch=1)
    assert log.append(0, epoch=1) == 1
    assert log.append(1, epoch=1) == 2


def test_an_old_epoch_is_fenced() -> None:
    log = Log()
    log.append(0, epoch=2)
    refused(errors.INVALID_PRODUCER_EPOCH, log, 1, epoch=1)


def test_batches_of_an_older_epoch_are_no_duplicates_of_a_newer() -> None:
    log = Log()
    log.append(0)
    assert log.append(0, epoch=1) == 1
    assert log.append(0, epoch=1) == 1


def test_a_coordinators_batch_needs_no_sequence() -> None:
    producers = Producers()
    batch = header(-1)
    assert producers.check(batch, is_client=False) is None
    producers.append(batch, 0)
    assert producers.check(batch, is_client=False) is None


def test_an_open_transaction_takes_only_transactional_batches() -> None:
    log = Log()
    log.append(0, is_transactional=True)
    refused(errors.INVALID_TXN_STATE, log, 1)
    assert log.producers.has_open_transaction(PID)


def test_an_open_transaction_is_unstable_until_its_marker_is_replicated() -> None:
    log = Log()
    log.append(0)
    log.append(1, is_transactional=True)
    log.append(2, is_transactional=True)
    assert log.producers.first_unstable_offset == 1
    batch, end = marker(is_abort=True)
    log.producers.check_marker(batch, end)
    completed = log.producers.end(batch, end, 3)
    assert completed is not None
    assert (completed.first_offset, completed.last_offset, completed.is_aborted) == (1, 3, True)
    assert log.producers.first_undecided_offset == -1
    assert log.producers.first_unstable_offset == 1
    log.producers.high_watermark_moved(3)
    assert log.producers.first_unstable_offset == 1
    log.producers.high_watermark_moved(4)
    assert log.producers.first_unstable_offset == -1


def test_a_marker_without_a_transaction_completes_nothing() -> None:
    producers = Producers()
    assert producers.end(*marker(), 0) is None
    assert producers.first_unstable_offset == -1


def test_a_marker_of_an_old_epoch_or_an_old_coordinator_is_fenced() -> None:
    log = Log()
    log.append(0, epoch=3, is_transactional=True)
    with pytest.raises(ApiError) as raised:
        log.producers.check_marker(*marker(2))
    assert raised.value.error is errors.INVALID_PRODUCER_EPOCH
    log.producers.end(*marker(3, coordinator_epoch=5), 1)
    with pytest.raises(ApiError) as raised:
        log.producers.check_marker(*marker(3, coordinator_epoch=4))
    assert raised.value.error is errors.TRANSACTION_COORDINATOR_FENCED


def test_a_v2_marker_carries_a_new_epoch_unless_it_is_sent_again() -> None:
    log = Log()
    log.append(0, epoch=3, is_transactional=True)
    with pytest.raises(ApiError):
        log.producers.check_marker(*marker(3), transaction_version=2)
    log.producers.check_marker(*marker(4), transaction_version=2)
    log.producers.end(*marker(4), 1)
    log.producers.check_marker(*marker(4), transaction_version=2)
    assert log.append(0, epoch=4) == 1  # the marker's epoch is where the producer goes on


def test_idle_producers_expire_but_not_with_an_open_transaction() -> None:
    log = Log()
    log.append(0, at=1000)
    assert log.producers.expire(1000 + 49, expiration_ms=50) == 0
    assert log.producers.expire(1000 + 50, expiration_ms=50) == 1
    log.append(5, at=1000, is_transactional=True)
    assert log.producers.expire(10_000, expiration_ms=50) == 0
