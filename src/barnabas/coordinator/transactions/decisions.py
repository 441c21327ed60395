"""Who may do what with a transactional id: the judgements of the transaction coordinator, each a pure function.

Nothing is changed or written here; :mod:`barnabas.coordinator.transactions.shard` asks and then acts. The rules for
ending a transaction differ between version 1, which knows a producer by its epoch alone, and version 2, in which the
epoch also tells a repetition from the next transaction.
"""

from __future__ import annotations

from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.requests import EndTransaction, InitProducer
from barnabas.coordinator.transactions.state import EPOCH_EXHAUSTED_FROM, Transaction, TransactionState
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

S = TransactionState


def stranger(transactional_id: str, transaction: Transaction | None, producer: ProducerIdEpoch) -> WireError:
    """Why a producer may not act for a transactional id; NONE if it may."""
    if not transactional_id:
        return errors.INVALID_REQUEST
    if transaction is None or transaction.producer_id != producer.producer_id:
        return errors.INVALID_PRODUCER_ID_MAPPING
    return errors.NONE if transaction.producer_epoch == producer.producer_epoch else errors.PRODUCER_FENCED


# --- InitProducerId -----------------------------------------------------------------------------------------------


def is_expected(transaction: Transaction, expected: ProducerIdEpoch | None) -> bool:
    """A producer that says who it was must have been that, or must repeat a question whose answer it never got."""
    if expected is None or transaction.producer_epoch == NO_PRODUCER_EPOCH:
        return True
    if expected.producer_id == transaction.producer_id:
        return True
    is_exhausted = expected.producer_epoch >= EPOCH_EXHAUSTED_FROM
    return is_exhausted and expected.producer_id == transaction.previous_producer_id


def initialised_as(transaction: Transaction, request: InitProducer, now_ms: int) -> Transaction | WireError | None:
    """The producer with its new epoch, or why it gets none; None if it needs another id first."""
    expected, epoch, timeout_ms = request.expected, transaction.producer_epoch, request.timeout_ms
    if transaction.is_epoch_exhausted and (expected is None or expected.producer_epoch == epoch):
        if request.fresh_producer_id == NO_PRODUCER_ID:
            return None
        last_epoch = NO_PRODUCER_EPOCH if expected is None else epoch
        return transaction.with_producer_id(
            request.fresh_producer_id, last_epoch=last_epoch, timeout_ms=timeout_ms, now_ms=now_ms
        )
    if expected is None:
        return transaction.with_epoch(epoch + 1, last_epoch=NO_PRODUCER_EPOCH, timeout_ms=timeout_ms, now_ms=now_ms)
    if epoch in (NO_PRODUCER_EPOCH, expected.producer_epoch):
        return transaction.with_epoch(epoch + 1, last_epoch=epoch, timeout_ms=timeout_ms, now_ms=now_ms)
    if expected.producer_epoch == transaction.last_producer_epoch:
        # The same question again: its answer was lost on the way.
        last_epoch = transaction.last_producer_epoch
        return transaction.with_epoch(epoch, last_epoch=last_epoch, timeout_ms=timeout_ms, now_ms=now_ms)
    return errors.PRODUCER_FENCED


# --- EndTxn: an error, NONE for a repetition that changes nothing, or None if the decision is to be written -----------


def end_v1(transaction: Transaction, request: EndTransaction) -> WireError | None:
    if transaction.producer_id != request.producer.producer_id:
        return errors.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != request.producer.producer_epoch:
        return errors.PRODUCER_FENCED
    if transaction.is_decided:
        return errors.CONCURRENT_TRANSACTIONS
    if transaction.state is S.ONGOING:
        return None
    is_same = transaction.state is not S.EMPTY and transaction.is_commit == request.is_commit
    return errors.NONE if is_same else errors.INVALID_TXN_STATE


def end_v2(transaction: Transaction, request: EndTransaction) -> WireError | None:
    """From version 2 on the epoch distinguishes a repetition from the end of the next transaction.

    While the markers are being written the producer already has its next epoch, or even its next id. So the request is
    not judged before they are written: it gets CONCURRENT_TRANSACTIONS, whichever producer and decision it carries.
    """
    if transaction.is_decided:
        return errors.CONCURRENT_TRANSACTIONS
    producer_id, epoch = request.producer
    is_retry_of_last_epoch = (
        transaction.previous_producer_id == producer_id
        and epoch == EPOCH_EXHAUSTED_FROM
        and transaction.producer_epoch == 0
    )
    if transaction.producer_id != producer_id and not is_retry_of_last_epoch:
        return errors.INVALID_PRODUCER_ID_MAPPING
    is_retry = is_retry_of_last_epoch or transaction.producer_epoch == epoch + 1
    is_current = transaction.producer_id == producer_id and transaction.producer_epoch == epoch
    if transaction.state is S.ONGOING:
        return None if is_current else errors.PRODUCER_FENCED
    if transaction.state is S.EMPTY:
        if not is_current:
            return errors.PRODUCER_FENCED
        return errors.INVALID_TXN_STATE if request.is_commit else None
    if is_retry:
        return errors.NONE if transaction.is_commit == request.is_commit else errors.INVALID_TXN_STATE
    if not is_current:
        return errors.PRODUCER_FENCED
    # The transaction touched nothing: to abort that is no mistake, to commit it is one.
    return errors.INVALID_TXN_STATE if request.is_commit else None
