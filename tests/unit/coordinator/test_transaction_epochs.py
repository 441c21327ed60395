"""Epochs of transactional producers, played step by step: who fences whom, and what happens when they run out."""

from __future__ import annotations

from transaction_desk import A, Desk, S, after

from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.requests import (
    Outcome,
)
from barnabas.coordinator.transactions.shard import TransactionRules
from barnabas.model import errors

# --- fencing ----------------------------------------------------------------------------------------------------------


def test_a_new_producer_fences_the_old_one_and_aborts_what_it_left_open() -> None:
    desk = Desk()
    zombie = desk.begin()
    desk.add(zombie, A)
    assert desk.init().error is errors.CONCURRENT_TRANSACTIONS
    assert desk.transaction.state is S.PREPARE_ABORT
    assert desk.init().error is errors.CONCURRENT_TRANSACTIONS
    markers = desk.deliver()
    assert (markers.is_commit, markers.producer) == (False, after(zombie))
    heir = desk.begin()
    assert heir == after(zombie, 2)
    assert desk.add(zombie, A) is errors.PRODUCER_FENCED
    assert desk.end(zombie).error is errors.PRODUCER_FENCED
    assert desk.init(expected=zombie).error is errors.PRODUCER_FENCED


def test_a_zombie_that_wants_a_new_epoch_does_not_abort_its_heirs_transaction() -> None:
    desk = Desk()
    zombie = desk.begin()
    heir = desk.begin()
    desk.add(heir, A)
    assert desk.init(expected=zombie).error is errors.PRODUCER_FENCED
    assert desk.transaction.state is S.ONGOING
    assert desk.init(expected=heir).error is errors.CONCURRENT_TRANSACTIONS
    desk.deliver()
    assert desk.init(expected=heir) == Outcome(errors.NONE, *after(heir)), "the question again, once it is aborted"


def test_a_cluster_of_version_1_fences_with_an_epoch_of_its_own() -> None:
    desk = Desk(TransactionRules(feature_level=1))
    zombie = desk.begin()
    desk.add(zombie, A, version=0)
    desk.init()
    markers = desk.deliver()
    assert (markers.producer, markers.version) == (after(zombie), 0)
    assert desk.begin() == after(zombie, 2)


def test_a_producer_may_raise_its_own_epoch_and_repeat_the_question() -> None:
    desk = Desk()
    producer = desk.begin()
    assert desk.init(expected=producer) == Outcome(errors.NONE, *after(producer))
    assert desk.init(expected=producer) == Outcome(errors.NONE, *after(producer))
    assert desk.init(expected=after(producer, -1)).error is errors.PRODUCER_FENCED
    assert desk.init(expected=ProducerIdEpoch(7, 0)).error is errors.PRODUCER_FENCED


def test_a_repeated_question_is_not_recognised_by_the_next_coordinator() -> None:
    desk = Desk()
    producer = desk.begin()
    desk.init(expected=producer)
    desk.restart()
    assert desk.init(expected=producer).error is errors.PRODUCER_FENCED


# --- epochs run out ---------------------------------------------------------------------------------------------------


def exhausted(desk: Desk, epoch: int = 32766) -> ProducerIdEpoch:
    producer = desk.begin()
    desk.set_epoch(epoch)
    return ProducerIdEpoch(producer.producer_id, epoch)


def test_an_end_with_the_last_epoch_moves_the_producer_to_another_id() -> None:
    desk = Desk()
    producer = exhausted(desk)
    desk.add(producer, A)
    outcome = desk.end(producer)
    assert outcome == Outcome(errors.NONE, 102, 0)
    assert desk.deliver().producer == ProducerIdEpoch(producer.producer_id, 32767)
    assert (desk.transaction.producer_id, desk.transaction.producer_epoch) == (102, 0)
    assert desk.end(producer) == outcome, "the same end again gets the same answer"
    assert desk.add(ProducerIdEpoch(102, 0), A) is errors.NONE
    assert desk.end(producer).error is errors.INVALID_PRODUCER_ID_MAPPING


def test_initialising_with_the_last_epoch_gives_another_id() -> None:
    desk = Desk()
    producer = exhausted(desk)
    assert desk.init(expected=producer) == Outcome(errors.NONE, 102, 0)
    assert desk.init(expected=producer) == Outcome(errors.NONE, 102, 0)
    assert desk.init() == Outcome(errors.NONE, 102, 1)


def test_there_is_always_an_epoch_left_to_fence_with() -> None:
    desk = Desk()
    zombie = exhausted(desk)
    desk.add(zombie, A)
    assert desk.init().error is errors.CONCURRENT_TRANSACTIONS
    assert desk.deliver().producer == ProducerIdEpoch(zombie.producer_id, 32767)
    assert desk.init() == Outcome(errors.NONE, 102, 1), "epoch 0 of the next id belongs to the fenced producer"
