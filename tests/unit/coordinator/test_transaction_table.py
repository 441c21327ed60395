"""The transaction coordinator's answer to every request in every state, as Apache Kafka 4.3 gives it.

In Kafka a transition is pending until its record is committed, and that of PREPARE_* until every marker is written.
Every request but a verification is then answered with CONCURRENT_TRANSACTIONS, whatever it carries. The coordinator
here applies a transition at once and delays only the answer, so the pending transitions that clients can see are those
of PREPARE_COMMIT and PREPARE_ABORT. PREPARE_EPOCH_FENCE and DEAD are no states of a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from transaction_desk import A, B, Desk, S, after

from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.requests import EndTransaction, InitProducer
from barnabas.coordinator.transactions.state import TransactionState
from barnabas.model import errors
from barnabas.model.errors import WireError

OK: Final = errors.NONE
FENCED: Final = errors.PRODUCER_FENCED
MAPPING: Final = errors.INVALID_PRODUCER_ID_MAPPING
STATE: Final = errors.INVALID_TXN_STATE
BUSY: Final = errors.CONCURRENT_TRANSACTIONS
ABORTABLE: Final = errors.TRANSACTION_ABORTABLE

STATES: Final = (
    S.EMPTY,
    S.ONGOING,
    S.PREPARE_COMMIT,
    S.PREPARE_ABORT,
    S.COMPLETE_COMMIT,
    S.COMPLETE_ABORT,
)
# The producer of the request beside the coordinator's: another id, or the same id with an epoch this far away.
OTHER: Final = "other id"
WHO: Final = (OTHER, "-2", "-1", "+0", "+1")
COMMIT, ABORT = True, False


def desk_in(state: TransactionState, *, version: int) -> Desk:
    """A coordinator whose transaction is in the state, with an epoch that leaves room below."""
    desk = Desk()
    producer = desk.begin()
    for _ in range(3):
        outcome = desk.init(expected=producer)
        producer = ProducerIdEpoch(outcome.producer_id, outcome.producer_epoch)
    if state is not S.EMPTY:
        assert desk.add(producer, A, version=version) is OK
    if state in (S.PREPARE_COMMIT, S.COMPLETE_COMMIT, S.PREPARE_ABORT, S.COMPLETE_ABORT):
        is_commit = state in (S.PREPARE_COMMIT, S.COMPLETE_COMMIT)
        assert desk.end(producer, is_commit=is_commit, version=version).error is OK
    if state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
        desk.deliver()
    assert desk.transaction.state is state
    return desk


def producer_of(desk: Desk, who: str) -> ProducerIdEpoch:
    current = ProducerIdEpoch(desk.transaction.producer_id, desk.transaction.producer_epoch)
    return ProducerIdEpoch(77_777, current.producer_epoch) if who == OTHER else after(current, int(who))


# --- EndTxn -------------------------------------------------------------------------------------------------

# For each producer of WHO: the answer to a commit, and to an abort.
Cells = tuple[tuple[WireError, WireError], ...]
NOBODY_ELSE: Final = ((MAPPING, MAPPING), (FENCED, FENCED), (FENCED, FENCED))

END_V1: Final[dict[TransactionState, Cells]] = {
    S.EMPTY: (*NOBODY_ELSE, (STATE, STATE), (FENCED, FENCED)),
    S.ONGOING: (*NOBODY_ELSE, (OK, OK), (FENCED, FENCED)),
    S.PREPARE_COMMIT: (*NOBODY_ELSE, (BUSY, BUSY), (FENCED, FENCED)),
    S.PREPARE_ABORT: (*NOBODY_ELSE, (BUSY, BUSY), (FENCED, FENCED)),
    S.COMPLETE_COMMIT: (*NOBODY_ELSE, (OK, STATE), (FENCED, FENCED)),
    S.COMPLETE_ABORT: (*NOBODY_ELSE, (STATE, OK), (FENCED, FENCED)),
}
END_V2: Final[dict[TransactionState, Cells]] = {
    S.EMPTY: (*NOBODY_ELSE, (STATE, OK), (FENCED, FENCED)),
    S.ONGOING: (*NOBODY_ELSE, (OK, OK), (FENCED, FENCED)),
    S.PREPARE_COMMIT: ((BUSY, BUSY),) * len(WHO),
    S.PREPARE_ABORT: ((BUSY, BUSY),) * len(WHO),
    S.COMPLETE_COMMIT: ((MAPPING, MAPPING), (FENCED, FENCED), (OK, STATE), (STATE, OK), (FENCED, FENCED)),
    S.COMPLETE_ABORT: ((MAPPING, MAPPING), (FENCED, FENCED), (STATE, OK), (STATE, OK), (FENCED, FENCED)),
}


def end_cells() -> Iterator[tuple[int, TransactionState, str, bool, WireError]]:
    for version, table in ((0, END_V1), (2, END_V2)):
        for state, cells in table.items():
            for who, (on_commit, on_abort) in zip(WHO, cells, strict=True):
                yield version, state, who, COMMIT, on_commit
                yield version, state, who, ABORT, on_abort


@pytest.mark.parametrize(("version", "state", "who", "is_commit", "error"), list(end_cells()))
def test_every_end_is_answered_as_kafka_answers_it(
    version: int, state: TransactionState, who: str, is_commit: bool, error: WireError
) -> None:
    desk = desk_in(state, version=version)
    before = desk.transaction
    outcome = desk.end(producer_of(desk, who), is_commit=is_commit, version=version)
    assert outcome.error is error
    if error is not OK:
        assert desk.transaction == before
    elif state is S.ONGOING:
        assert desk.transaction.state is (S.PREPARE_COMMIT if is_commit else S.PREPARE_ABORT)
    elif who == "+0" and version == 2:
        assert desk.transaction.state is S.COMPLETE_ABORT
        assert outcome.producer_epoch == desk.transaction.producer_epoch == before.producer_epoch + 1
    else:
        assert desk.transaction == before, "a repetition changes nothing"
        assert (outcome.producer_id, outcome.producer_epoch) == (before.producer_id, before.producer_epoch)


@pytest.mark.parametrize("is_commit", [COMMIT, ABORT])
@pytest.mark.parametrize("version", [0, 2])
def test_the_end_of_an_unknown_id_is_refused(version: int, is_commit: bool) -> None:
    assert Desk().end(ProducerIdEpoch(1, 0), is_commit=is_commit, version=version).error is MAPPING
    nameless = EndTransaction(transactional_id="", producer=ProducerIdEpoch(1, 0), is_commit=is_commit, version=version)
    assert Desk().ask(nameless).error is errors.INVALID_REQUEST


# --- AddPartitionsToTxn, AddOffsetsToTxn -------------------------------------------------------------------------

OPEN_TO_ITS_PRODUCER: Final = (MAPPING, FENCED, FENCED, OK, FENCED)
ADD: Final[dict[TransactionState, tuple[WireError, ...]]] = {
    S.EMPTY: OPEN_TO_ITS_PRODUCER,
    S.ONGOING: OPEN_TO_ITS_PRODUCER,
    S.PREPARE_COMMIT: (BUSY,) * len(WHO),
    S.PREPARE_ABORT: (BUSY,) * len(WHO),
    S.COMPLETE_COMMIT: OPEN_TO_ITS_PRODUCER,
    S.COMPLETE_ABORT: OPEN_TO_ITS_PRODUCER,
}


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("state", "who", "error"),
    [(state, who, error) for state, row in ADD.items() for who, error in zip(WHO, row, strict=True)],
)
def test_every_addition_is_answered_as_kafka_answers_it(
    version: int, state: TransactionState, who: str, error: WireError
) -> None:
    desk = desk_in(state, version=version)
    before = desk.transaction
    assert desk.add(producer_of(desk, who), B, version=version) is error
    if error is OK:
        assert desk.transaction.state is S.ONGOING
        assert B in desk.transaction.partitions
    else:
        assert desk.transaction == before


# --- the verification of a leader --------------------------------------------------------------------------------

VERIFY: Final[dict[TransactionState, tuple[WireError, ...]]] = {
    S.EMPTY: (MAPPING, FENCED, FENCED, ABORTABLE, FENCED),
    S.ONGOING: (MAPPING, FENCED, FENCED, OK, FENCED),
    S.PREPARE_COMMIT: (MAPPING, FENCED, FENCED, BUSY, FENCED),
    S.PREPARE_ABORT: (MAPPING, FENCED, FENCED, BUSY, FENCED),
    S.COMPLETE_COMMIT: (MAPPING, FENCED, FENCED, ABORTABLE, FENCED),
    S.COMPLETE_ABORT: (MAPPING, FENCED, FENCED, ABORTABLE, FENCED),
}


@pytest.mark.parametrize(
    ("state", "who", "error"),
    [(state, who, error) for state, row in VERIFY.items() for who, error in zip(WHO, row, strict=True)],
)
def test_every_verification_is_answered_as_kafka_answers_it(
    state: TransactionState, who: str, error: WireError
) -> None:
    desk = desk_in(state, version=0)
    assert desk.verify(producer_of(desk, who), A) is error
    if error is OK:
        assert desk.verify(producer_of(desk, who), B) is ABORTABLE, "a partition that was never added"


# --- InitProducerId ---------------------------------------------------------------------------------------------

NEW: Final = "new producer"
# A producer that names the epoch before the current one repeats a question, if the coordinator still knows that epoch.
IDLE: Final = {NEW: OK, OTHER: FENCED, "-2": FENCED, "-1": OK, "+0": OK, "+1": FENCED}
INIT: Final[dict[TransactionState, dict[str, WireError]]] = {
    S.EMPTY: IDLE,
    # Kafka aborts the transaction for a producer with another epoch too: this is the one deliberate difference.
    S.ONGOING: {NEW: BUSY, OTHER: FENCED, "-2": FENCED, "-1": FENCED, "+0": BUSY, "+1": FENCED},
    S.PREPARE_COMMIT: dict.fromkeys(IDLE, BUSY),
    S.PREPARE_ABORT: dict.fromkeys(IDLE, BUSY),
    S.COMPLETE_COMMIT: IDLE,
    S.COMPLETE_ABORT: IDLE,
}


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("state", "who", "error"), [(state, who, error) for state, row in INIT.items() for who, error in row.items()]
)
def test_every_initialisation_is_answered_as_kafka_answers_it(
    version: int, state: TransactionState, who: str, error: WireError
) -> None:
    desk = desk_in(state, version=version)
    before = desk.transaction
    outcome = desk.init(expected=None if who == NEW else producer_of(desk, who))
    assert outcome.error is error
    if error is OK:
        epoch = before.producer_epoch + (who != "-1")
        assert (outcome.producer_id, outcome.producer_epoch) == (before.producer_id, epoch)
        assert desk.transaction.state is S.EMPTY
    elif state is S.ONGOING and error is BUSY:
        assert desk.transaction.state is S.PREPARE_ABORT
    else:
        assert desk.transaction == before


@pytest.mark.parametrize("expected", [None, ProducerIdEpoch(7, 3)])
def test_an_unknown_id_is_initialised_whatever_its_producer_says_it_was(expected: ProducerIdEpoch | None) -> None:
    outcome = Desk().init(expected=expected)
    assert (outcome.error, outcome.producer_epoch) == (OK, 0)
    nameless = InitProducer(transactional_id="", timeout_ms=1000)
    assert Desk().ask(nameless).error is errors.INVALID_REQUEST


# --- the epochs run out ------------------------------------------------------------------------------------------

LAST_EPOCH: Final = 32_766


@pytest.mark.parametrize("is_commit", [COMMIT, ABORT])
def test_a_producer_that_already_has_its_next_id_waits_for_the_markers_too(is_commit: bool) -> None:
    desk, producer = exhausted()
    outcome = desk.end(producer, is_commit=is_commit)
    heir = ProducerIdEpoch(outcome.producer_id, outcome.producer_epoch)
    assert heir.producer_id != producer.producer_id
    for each in (producer, heir, ProducerIdEpoch(77_777, 0)):
        assert desk.add(each, A) is BUSY
        assert desk.end(each, is_commit=is_commit).error is BUSY
        assert desk.end(each, is_commit=not is_commit).error is BUSY
        assert desk.init(expected=each).error is BUSY
    desk.deliver()
    assert desk.end(producer, is_commit=is_commit) == outcome
    assert desk.end(producer, is_commit=not is_commit).error is STATE
    assert desk.add(heir, A) is OK


def test_the_previous_id_is_known_until_the_next_transition() -> None:
    desk, producer = exhausted()
    outcome = desk.end(producer)
    desk.deliver()
    heir = ProducerIdEpoch(outcome.producer_id, outcome.producer_epoch)
    assert desk.transaction.previous_producer_id == producer.producer_id
    desk.add(heir, A, version=0)
    assert desk.transaction.previous_producer_id == heir.producer_id
    desk.end(heir, version=0)
    desk.deliver()
    assert desk.end(producer).error is MAPPING
    assert desk.init(expected=producer).error is FENCED


def test_a_fence_with_the_last_epoch_moves_the_producer_to_another_id() -> None:
    desk, producer = exhausted()
    assert desk.init(expected=producer).error is BUSY
    assert desk.deliver().producer == after(producer)
    assert (desk.transaction.producer_epoch, desk.transaction.previous_producer_id) == (0, producer.producer_id)
    heir = desk.init(expected=producer)
    assert (heir.error, heir.producer_id, heir.producer_epoch) == (OK, desk.transaction.producer_id, 0)


def test_a_time_out_with_the_last_epoch_moves_the_producer_to_another_id() -> None:
    desk, producer = exhausted()
    desk.advance(120_000)
    assert desk.deliver().producer == after(producer)
    assert desk.transaction.state is S.COMPLETE_ABORT
    assert (desk.transaction.producer_epoch, desk.transaction.previous_producer_id) == (0, producer.producer_id)
    assert desk.end(producer).error is STATE
    assert desk.end(producer, is_commit=ABORT).producer_epoch == 0, (
        "an epoch above the last one is given to no producer"
    )


def exhausted() -> tuple[Desk, ProducerIdEpoch]:
    """A coordinator with an open transaction whose producer has the last epoch that a client may have."""
    desk = Desk()
    producer = ProducerIdEpoch(desk.begin().producer_id, LAST_EPOCH)
    desk.set_epoch(LAST_EPOCH)
    assert desk.add(producer, A) is OK
    return desk, producer
