"""The transaction coordinator's machine, played step by step in virtual time: begin, end, time-outs, restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from transaction_desk import ID, MINUTE_MS, A, B, Desk, S, after

from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.requests import (
    Describe,
    EndTransaction,
    InitProducer,
    ListAll,
    MarkersWritten,
    Outcome,
    WriteMarkers,
)
from barnabas.coordinator.transactions.shard import EXPIRED_PER_STEP_MAX, EXPIRY, TransactionRules
from barnabas.coordinator.transactions.state import TRANSITIONS, Transaction, TransactionState
from barnabas.model import errors

# --- one transaction ----------------------------------------------------------------------------------------------


def test_a_new_id_gets_a_fresh_producer_at_epoch_zero() -> None:
    desk = Desk()
    assert desk.init() == Outcome(errors.NONE, 101, 0)
    assert desk.transaction.state is S.EMPTY


def test_a_commit_in_version_2_is_decided_marked_and_completed_with_the_next_epoch() -> None:
    desk = Desk()
    producer = desk.begin()
    assert desk.add(producer, A) is errors.NONE
    assert desk.add(producer, B) is errors.NONE
    assert desk.end(producer) == Outcome(errors.NONE, *after(producer))
    assert desk.transaction.state is S.PREPARE_COMMIT
    assert desk.deliver() == WriteMarkers(
        transactional_id=ID, producer=after(producer), is_commit=True, partitions=(A, B), version=2
    )
    assert desk.transaction.state is S.COMPLETE_COMMIT
    assert not desk.transaction.partitions


def test_a_transaction_of_version_1_keeps_its_epoch() -> None:
    desk = Desk()
    producer = desk.begin()
    desk.add(producer, A, version=0)
    assert desk.end(producer, is_commit=False, version=0) == Outcome(errors.NONE, *producer)
    markers = desk.deliver()
    assert (markers.producer, markers.is_commit, markers.version) == (producer, False, 0)
    assert desk.transaction.state is S.COMPLETE_ABORT
    assert desk.add(producer, A, version=0) is errors.NONE


def test_partitions_that_are_already_there_are_not_written_again() -> None:
    desk = Desk()
    producer = desk.begin()
    desk.add(producer, A, B)
    written = len(desk.log)
    assert desk.add(producer, A) is errors.NONE
    assert len(desk.log) == written


def test_verification_knows_members_and_nobody_else() -> None:
    desk = Desk()
    producer = desk.begin()
    assert desk.verify(producer, A) is errors.TRANSACTION_ABORTABLE
    desk.add(producer, A)
    assert desk.verify(producer, A) is errors.NONE
    assert desk.verify(producer, B) is errors.TRANSACTION_ABORTABLE
    assert desk.verify(after(producer), A) is errors.PRODUCER_FENCED
    assert desk.verify(ProducerIdEpoch(7, 0), A) is errors.INVALID_PRODUCER_ID_MAPPING
    desk.end(producer, version=0)
    assert desk.verify(producer, A) is errors.CONCURRENT_TRANSACTIONS


def test_strangers_are_told_that_they_are() -> None:
    desk = Desk()
    stranger = ProducerIdEpoch(7, 0)
    assert desk.add(stranger, A) is errors.INVALID_PRODUCER_ID_MAPPING
    assert desk.end(stranger).error is errors.INVALID_PRODUCER_ID_MAPPING
    producer = desk.begin()
    assert desk.add(after(producer), A) is errors.PRODUCER_FENCED
    assert desk.end(after(producer)).error is errors.PRODUCER_FENCED
    nameless = EndTransaction(transactional_id="", producer=producer, is_commit=True, version=2)
    assert desk.ask(nameless).error is errors.INVALID_REQUEST


def test_nothing_begins_while_markers_are_on_their_way() -> None:
    desk = Desk()
    producer = desk.begin()
    desk.add(producer, A)
    desk.end(producer)
    assert desk.add(after(producer), A) is errors.CONCURRENT_TRANSACTIONS
    assert desk.init().error is errors.CONCURRENT_TRANSACTIONS
    assert desk.end(producer).error is errors.CONCURRENT_TRANSACTIONS
    assert desk.end(after(producer), is_commit=False).error is errors.CONCURRENT_TRANSACTIONS, "the next transaction"
    desk.deliver()
    assert desk.add(after(producer), A) is errors.NONE


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_time_out_beyond_the_limits_is_refused(timeout_ms: int) -> None:
    assert Desk().init(timeout_ms=timeout_ms).error is errors.INVALID_TRANSACTION_TIMEOUT


# --- ends that come twice, late or for nothing ------------------------------------------------------------------------

RETRY, CURRENT = -1, 0


@pytest.mark.parametrize(
    ("before", "is_commit", "which", "error"),
    [
        (S.EMPTY, False, RETRY, errors.PRODUCER_FENCED),
        (S.EMPTY, False, CURRENT, errors.NONE),
        (S.EMPTY, True, RETRY, errors.PRODUCER_FENCED),
        (S.EMPTY, True, CURRENT, errors.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, False, RETRY, errors.NONE),
        (S.COMPLETE_ABORT, False, CURRENT, errors.NONE),
        (S.COMPLETE_ABORT, True, RETRY, errors.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, True, CURRENT, errors.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, False, RETRY, errors.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, False, CURRENT, errors.NONE),
        (S.COMPLETE_COMMIT, True, RETRY, errors.NONE),
        (S.COMPLETE_COMMIT, True, CURRENT, errors.INVALID_TXN_STATE),
    ],
)
def test_an_end_in_version_2_is_judged_by_its_epoch(
    before: TransactionState, is_commit: bool, which: int, error: errors.WireError
) -> None:
    desk = Desk()
    producer = desk.begin()
    if before is not S.EMPTY:
        desk.add(producer, A)
        desk.end(producer, is_commit=before is S.COMPLETE_COMMIT)
        desk.deliver()
    epoch = desk.transaction.producer_epoch
    outcome = desk.end(ProducerIdEpoch(producer.producer_id, epoch + which), is_commit=is_commit)
    assert outcome.error is error
    is_bumped = error is errors.NONE and which == CURRENT
    assert desk.transaction.producer_epoch == epoch + is_bumped
    if error is errors.NONE:
        assert outcome.producer_epoch == desk.transaction.producer_epoch


def test_the_abort_of_a_transaction_that_touched_nothing_needs_no_marker() -> None:
    desk = Desk()
    producer = desk.begin()
    assert desk.end(producer, is_commit=False) == Outcome(errors.NONE, *after(producer))
    assert desk.transaction.state is S.COMPLETE_ABORT
    assert not desk.sent


def test_ends_in_version_1_are_judged_by_the_state() -> None:
    desk = Desk()
    producer = desk.begin()
    assert desk.end(producer, version=0).error is errors.INVALID_TXN_STATE
    desk.add(producer, A, version=0)
    desk.end(producer, version=0)
    assert desk.end(producer, version=0).error is errors.CONCURRENT_TRANSACTIONS
    desk.deliver()
    assert desk.end(producer, version=0).error is errors.NONE
    assert desk.end(producer, is_commit=False, version=0).error is errors.INVALID_TXN_STATE


def test_a_delayed_end_never_touches_the_next_transaction() -> None:
    desk = Desk()
    first = desk.begin()
    desk.add(first, A)
    desk.end(first)
    desk.deliver()
    second = after(first)
    desk.add(second, A)
    for is_commit in (True, False):
        assert desk.end(first, is_commit=is_commit).error is errors.PRODUCER_FENCED
    assert desk.transaction.state is S.ONGOING


def test_markers_reported_twice_complete_once() -> None:
    desk = Desk()
    producer = desk.begin()
    desk.add(producer, A)
    desk.end(producer)
    markers = desk.deliver()
    desk.add(after(producer), B)
    desk.end(after(producer))
    desk.ask(MarkersWritten(transactional_id=ID, producer=markers.producer))
    assert desk.transaction.state is S.PREPARE_COMMIT


# --- time ---------------------------------------------------------------------------------------------------------


def test_a_transaction_whose_time_is_up_is_aborted_at_the_next_look() -> None:
    desk = Desk()
    producer = desk.begin()
    desk.add(producer, A)
    desk.advance(MINUTE_MS)
    assert desk.transaction.state is S.ONGOING
    desk.advance(desk.rules.time_out_check_ms)
    assert desk.transaction.state is S.PREPARE_ABORT
    assert desk.end(producer).error is errors.CONCURRENT_TRANSACTIONS
    desk.deliver()
    assert desk.end(producer).error is errors.INVALID_TXN_STATE
    assert desk.add(producer, B) is errors.PRODUCER_FENCED
    assert desk.end(producer, is_commit=False) == Outcome(errors.NONE, *after(producer))


def test_time_outs_are_found_after_a_restart() -> None:
    desk = Desk()
    desk.add(desk.begin(), A)
    desk.restart()
    desk.advance(MINUTE_MS + desk.rules.time_out_check_ms)
    assert desk.transaction.state is S.PREPARE_ABORT


def test_nobody_looks_for_time_outs_while_nothing_is_open() -> None:
    desk = Desk()
    desk.begin()
    assert list(desk.timers) == [EXPIRY]


def test_an_id_that_nobody_uses_expires() -> None:
    desk = Desk()
    producer = desk.begin()
    desk.advance(desk.rules.expiration_ms - MINUTE_MS)
    desk.add(producer, A)
    desk.end(producer)
    desk.deliver()
    desk.advance(desk.rules.expiration_ms - desk.rules.expiry_check_ms)
    assert desk.ask(Describe(ID)) == desk.transaction
    desk.advance(2 * desk.rules.expiry_check_ms)
    assert desk.ask(Describe(ID)) is None
    assert desk.log[-1][1] is None
    desk.advance(desk.rules.expiry_check_ms)
    assert not desk.timers


def test_an_open_transaction_never_expires() -> None:
    desk = Desk(TransactionRules(expiration_ms=1000, time_out_check_ms=10**9))
    desk.add(desk.begin(), A)
    desk.advance(10 * desk.rules.expiry_check_ms)
    assert desk.transaction.state is S.ONGOING


def test_many_expired_ids_go_in_batches() -> None:
    desk = Desk()
    for number in range(EXPIRED_PER_STEP_MAX + 1):
        desk.ask(InitProducer(transactional_id=f"id-{number}", timeout_ms=1))
    desk.advance(desk.rules.expiration_ms + desk.rules.expiry_check_ms)
    assert desk.ask(ListAll()) == []


# --- restarts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_new_coordinator_takes_up_the_markers_of_the_old_one(is_commit: bool) -> None:
    desk = Desk()
    producer = desk.begin()
    desk.add(producer, A, B)
    desk.end(producer, is_commit=is_commit)
    before = desk.sent.pop()
    desk.restart()
    assert desk.sent == [before]
    desk.deliver()
    assert desk.transaction.state is (S.COMPLETE_COMMIT if is_commit else S.COMPLETE_ABORT)


def test_a_restart_changes_nothing_but_the_last_epoch() -> None:
    desk = Desk()
    producer = desk.begin()
    desk.add(producer, A, B)
    before = desk.transaction
    desk.restart()
    assert desk.transaction == replace(before, last_producer_epoch=-1)


def test_everything_is_listed_in_order() -> None:
    desk = Desk()
    for name in ("b", "a"):
        desk.ask(InitProducer(transactional_id=name, timeout_ms=1))
    assert [each.transactional_id for each in desk.ask(ListAll())] == ["a", "b"]


def test_every_state_has_a_row_and_only_known_states_follow() -> None:
    assert set(TRANSITIONS) == set(S)
    assert TRANSITIONS[S.DEAD] == frozenset()
    with pytest.raises(AssertionError):
        Desk().shard.replay_marker(1, 1, is_commit=True)
    with pytest.raises(AssertionError, match="Empty to CompleteCommit"):
        Transaction(transactional_id=ID, producer_id=1, timeout_ms=1, updated_ms=0)._to(S.COMPLETE_COMMIT)
