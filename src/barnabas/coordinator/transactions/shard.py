"""The transaction coordinator: one shard for each partition of ``__transaction_state``, as a pure machine.

A transactional id goes Empty → Ongoing → Prepare… → Complete… and round again; ``transaction_state`` has the table. The
record that says Prepare is the decision: once it is committed the markers are written, however often that takes.
Requests, time-outs and expiry come in here; the runtime performs what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.coordinator.runtime.effects import Answer, Effects, ProducerIdEpoch, nothing_to_undo
from barnabas.coordinator.transactions import records
from barnabas.coordinator.transactions.decisions import end_v1, end_v2, initialised_as, is_expected, stranger
from barnabas.coordinator.transactions.requests import (
    AbortTimedOut,
    AddPartitions,
    Describe,
    EndTransaction,
    FetchProducerId,
    InitProducer,
    ListAll,
    MarkersWritten,
    NeedsProducerId,
    Outcome,
    VerifyPartitions,
    WriteMarkers,
)
from barnabas.coordinator.transactions.state import (
    EPOCH_BUMP_SINCE,
    Transaction,
    TransactionState,
)
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.observe.log import logger

log = logger("transactions")

TIME_OUTS: Final = "time-outs"
EXPIRY: Final = "expiry"
MARKERS: Final = "markers"
MARKERS_AGAIN_MS: Final = 1000  # after which a transaction is ended again whose end could not be written down
EXPIRED_PER_STEP_MAX: Final = 1000  # tombstones in one batch; the rest follow in the next step

S = TransactionState


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRules:
    """The settings that the machine follows, and the cluster's level of the feature ``transaction.version``."""

    timeout_ms_max: int = 900_000
    expiration_ms: int = 604_800_000
    time_out_check_ms: int = 10_000
    expiry_check_ms: int = 3_600_000
    feature_level: int = 2


class TransactionShard:
    def __init__(self, rules: Callable[[], TransactionRules]) -> None:
        self._rules = rules
        self._transactions: dict[str, Transaction] = {}
        self._ongoing: dict[str, None] = {}  # a dict keeps the order
        # Which epoch came before: never in the log, so a new coordinator does not know it.
        self._last_epochs: dict[str, int] = {}
        self._armed: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self._transactions)

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    # --- what the log says ----------------------------------------------------------------------------------------

    def replay(
        self, key: bytes, value: bytes | None, *, offset: int, producer: ProducerIdEpoch | None, timestamp_ms: int
    ) -> None:
        transactional_id = records.decode_key(key)
        if transactional_id is None:
            return  # of a newer kind; it is kept in the log for whoever knows it
        self._ongoing.pop(transactional_id, None)
        if value is None:
            self._transactions.pop(transactional_id, None)
            self._last_epochs.pop(transactional_id, None)
            return
        transaction = records.decode_value(transactional_id, value)
        last_epoch = self._last_epochs.get(transactional_id, NO_PRODUCER_EPOCH)
        self._transactions[transactional_id] = replace(transaction, last_producer_epoch=last_epoch)
        if transaction.state is S.ONGOING:
            self._ongoing[transactional_id] = None

    def replay_marker(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        raise AssertionError("the transaction log is not written in transactions")

    def loaded(self, now_ms: int) -> Effects:
        """Take up the decisions whose markers the coordinator before us may not have written."""
        effects = Effects()
        for _, transaction in sorted(self._transactions.items()):
            if transaction.is_decided:
                effects.send(_markers(transaction))
        return self._arm(effects, now_ms)

    def unloaded(self) -> list[Answer]:
        return []

    # --- what is asked --------------------------------------------------------------------------------------------

    def handle(self, request_id: int, request: Any, now_ms: int) -> Effects:
        match request:
            case AddPartitions():
                return self._add_partitions(request_id, request, now_ms)
            case VerifyPartitions():
                return self._verify(request_id, request)
            case EndTransaction():
                return self._end(request_id, request, now_ms)
            case MarkersWritten():
                return self._markers_written(request, now_ms)
            case AbortTimedOut():
                return self._abort_timed_out(request, now_ms)
            case InitProducer():
                return self._init(request_id, request, now_ms)
            case Describe():
                return Effects().answer(request_id, self._transactions.get(request.transactional_id))
            case ListAll():
                return Effects().answer(request_id, [each for _, each in sorted(self._transactions.items())])
        raise AssertionError(f"{request} is no request to a transaction coordinator")

    def _init(self, request_id: int, request: InitProducer, now_ms: int) -> Effects:
        rules = self._rules()
        if not request.transactional_id:
            return _refused(request_id, errors.INVALID_REQUEST)
        if not 0 < request.timeout_ms <= rules.timeout_ms_max:
            return _refused(request_id, errors.INVALID_TRANSACTION_TIMEOUT)
        transaction = self._transactions.get(request.transactional_id)
        if transaction is None:
            if request.fresh_producer_id == NO_PRODUCER_ID:
                return Effects().answer(request_id, NeedsProducerId())
            transaction = Transaction(
                transactional_id=request.transactional_id,
                producer_id=request.fresh_producer_id,
                timeout_ms=request.timeout_ms,
                updated_ms=now_ms,
            )
        if transaction.is_decided:
            return _refused(request_id, errors.CONCURRENT_TRANSACTIONS)
        if not is_expected(transaction, request.expected):
            return _refused(request_id, errors.PRODUCER_FENCED)
        if transaction.state is S.ONGOING:
            if request.expected is not None and request.expected.producer_epoch != transaction.producer_epoch:
                # Whoever opened this transaction has a newer epoch: a question of before must not abort it.
                return _refused(request_id, errors.PRODUCER_FENCED)
            if self._needs_producer_id(transaction) and request.fresh_producer_id == NO_PRODUCER_ID:
                return Effects().answer(request_id, NeedsProducerId())
            # The epoch of the fence is given to no client: the producer repeats its request and gets the one after it.
            effects = self._fence(transaction, now_ms, fresh_producer_id=request.fresh_producer_id)
            return effects.answer(request_id, Outcome(errors.CONCURRENT_TRANSACTIONS))
        initialised = initialised_as(transaction, request, now_ms)
        if isinstance(initialised, WireError):
            return _refused(request_id, initialised)
        if initialised is None:
            return Effects().answer(request_id, NeedsProducerId())
        effects = self._write(Effects(), initialised, now_ms)
        return effects.answer(
            request_id,
            Outcome(producer_id=initialised.producer_id, producer_epoch=initialised.producer_epoch),
        )

    def _add_partitions(self, request_id: int, request: AddPartitions, now_ms: int) -> Effects:
        transaction = self._transactions.get(request.transactional_id)
        if transaction is not None and transaction.is_decided:
            # First of all, because the producer may already have its next id.
            return _refused(request_id, errors.CONCURRENT_TRANSACTIONS)
        error = stranger(request.transactional_id, transaction, request.producer)
        if transaction is None or error is not errors.NONE:
            return _refused(request_id, error)
        if transaction.state is S.ONGOING and request.partitions <= transaction.partitions:
            return Effects().answer(request_id, Outcome())
        added = transaction.with_partitions(request.partitions, version=request.version, now_ms=now_ms)
        return self._write(Effects(), added, now_ms).answer(request_id, Outcome())

    def _verify(self, request_id: int, request: VerifyPartitions) -> Effects:
        transaction = self._transactions.get(request.transactional_id)
        error = stranger(request.transactional_id, transaction, request.producer)
        if transaction is not None and error is errors.NONE and transaction.is_decided:
            error = errors.CONCURRENT_TRANSACTIONS
        members = transaction.partitions if transaction is not None else frozenset()
        verified = {
            partition: error
            if error is not errors.NONE
            else (errors.NONE if partition in members else errors.TRANSACTION_ABORTABLE)
            for partition in sorted(request.partitions)
        }
        return Effects().answer(request_id, verified)

    def _end(self, request_id: int, request: EndTransaction, now_ms: int) -> Effects:
        if not request.transactional_id:
            return _refused(request_id, errors.INVALID_REQUEST)
        transaction = self._transactions.get(request.transactional_id)
        if transaction is None:
            return _refused(request_id, errors.INVALID_PRODUCER_ID_MAPPING)
        is_bumping = request.version >= EPOCH_BUMP_SINCE
        verdict = end_v2(transaction, request) if is_bumping else end_v1(transaction, request)
        if verdict is not None:
            if verdict is not errors.NONE:
                return _refused(request_id, verdict)
            return Effects().answer(
                request_id,
                Outcome(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch),
            )
        if is_bumping and transaction.is_epoch_exhausted and request.fresh_producer_id == NO_PRODUCER_ID:
            return Effects().answer(request_id, NeedsProducerId())
        prepared = transaction.decided(
            S.PREPARE_COMMIT if request.is_commit else S.PREPARE_ABORT,
            version=request.version,
            now_ms=now_ms,
            next_producer_id=request.fresh_producer_id if is_bumping and transaction.is_epoch_exhausted else -1,
        )
        effects = self._decide(prepared, now_ms)
        # The producer goes on under the epoch that it will have when the markers are written.
        after = prepared.completed(now_ms)
        return effects.answer(request_id, Outcome(producer_id=after.producer_id, producer_epoch=after.producer_epoch))

    def _markers_written(self, request: MarkersWritten, now_ms: int) -> Effects:
        transaction = self._transactions.get(request.transactional_id)
        if (
            transaction is None
            or not transaction.is_decided
            or (transaction.producer_id, transaction.producer_epoch) != request.producer
        ):
            return Effects()  # written twice: the first report has settled it
        effects = self._write(Effects(), transaction.completed(now_ms), now_ms)
        again = (MARKERS, request.transactional_id)
        effects.rescue = lambda: Effects().timer(again, now_ms + MARKERS_AGAIN_MS)
        return effects

    # --- time -----------------------------------------------------------------------------------------------------

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        self._armed.discard(key)
        effects = Effects()
        if isinstance(key, tuple):
            transaction = self._transactions.get(key[1])
            # A marker that is there already is no harm: whoever writes it again is told that all is well.
            return effects.send(_markers(transaction)) if transaction and transaction.is_decided else effects
        if key == TIME_OUTS:
            for transactional_id in list(self._ongoing):
                transaction = self._transactions[transactional_id]
                if transaction.is_timed_out(now_ms):
                    log.info("transaction is aborted, its time is up", transactional_id=transactional_id)
                    if self._needs_producer_id(transaction):
                        effects.send(FetchProducerId(transactional_id))
                    else:
                        effects.extend(self._fence(transaction, now_ms))
        else:
            expiration_ms = self._rules().expiration_ms
            expired = [
                transactional_id
                for transactional_id, transaction in sorted(self._transactions.items())
                if transaction.is_expired(now_ms, expiration_ms=expiration_ms)
            ]
            for transactional_id in expired[:EXPIRED_PER_STEP_MAX]:
                effects.record(records.encode_key(transactional_id), None)
                effects.rescue = nothing_to_undo
            if len(expired) > EXPIRED_PER_STEP_MAX:
                self._armed.add(EXPIRY)
                effects.timer(EXPIRY, now_ms)
        return self._arm(effects, now_ms)

    def _arm(self, effects: Effects, now_ms: int, *, is_ongoing: bool = False) -> Effects:
        """Look again after a while, as long as there is anything to look at."""
        rules = self._rules()
        if (self._ongoing or is_ongoing) and TIME_OUTS not in self._armed:
            self._armed.add(TIME_OUTS)
            effects.timer(TIME_OUTS, now_ms + rules.time_out_check_ms)
        if (self._transactions or effects.records) and EXPIRY not in self._armed:
            self._armed.add(EXPIRY)
            effects.timer(EXPIRY, now_ms + rules.expiry_check_ms)
        return effects

    # --- deciding -------------------------------------------------------------------------------------------------

    def _abort_timed_out(self, request: AbortTimedOut, now_ms: int) -> Effects:
        transaction = self._transactions.get(request.transactional_id)
        if transaction is None or not transaction.is_timed_out(now_ms):
            return Effects()  # the producer ended it in the meantime
        return self._fence(transaction, now_ms, fresh_producer_id=request.fresh_producer_id)

    def _needs_producer_id(self, transaction: Transaction) -> bool:
        """Whether a fence raises the epoch to one that no producer may have, so that another id must follow."""
        return self._fence_version() >= EPOCH_BUMP_SINCE and transaction.is_epoch_exhausted

    def _fence(self, transaction: Transaction, now_ms: int, *, fresh_producer_id: int = NO_PRODUCER_ID) -> Effects:
        next_id = fresh_producer_id if self._needs_producer_id(transaction) else NO_PRODUCER_ID
        version = self._fence_version()
        return self._decide(transaction.fenced(version=version, now_ms=now_ms, next_producer_id=next_id), now_ms)

    def _fence_version(self) -> int:
        """Nobody's request decides this, so the cluster's version does; version 1 leaves no trace in the record."""
        level = self._rules().feature_level
        return level if level >= EPOCH_BUMP_SINCE else 0

    def _decide(self, prepared: Transaction, now_ms: int) -> Effects:
        effects = self._write(Effects(), prepared, now_ms)
        if prepared.partitions:
            return effects.send(_markers(prepared))
        return self._write(effects, prepared.completed(now_ms), now_ms)  # there is nowhere to write a marker

    def _write(self, effects: Effects, transaction: Transaction, now_ms: int) -> Effects:
        value = records.encode_value(transaction, feature_level=self._rules().feature_level)
        effects.record(records.encode_key(transaction.transactional_id), value)
        # Read only when the record is replayed; if it cannot be written, nothing has happened.
        self._last_epochs[transaction.transactional_id] = transaction.last_producer_epoch
        effects.rescue = nothing_to_undo
        return self._arm(effects, now_ms, is_ongoing=transaction.state is S.ONGOING)


def _refused(request_id: int, error: WireError) -> Effects:
    return Effects().answer(request_id, Outcome(error))


def _markers(transaction: Transaction) -> WriteMarkers:
    return WriteMarkers(
        transactional_id=transaction.transactional_id,
        producer=ProducerIdEpoch(transaction.producer_id, transaction.producer_epoch),
        is_commit=transaction.is_commit,
        partitions=tuple(sorted(transaction.partitions)),
        version=transaction.client_version,
    )
