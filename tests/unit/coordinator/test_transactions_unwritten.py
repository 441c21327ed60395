"""What a transaction coordinator decides while its log takes nothing: it has not happened, and it happens later."""

from __future__ import annotations

from typing import Any

from barnabas.coordinator.runtime.effects import Effects, ProducerIdEpoch
from barnabas.coordinator.transactions.requests import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    MarkersWritten,
    Outcome,
    WriteMarkers,
)
from barnabas.coordinator.transactions.shard import (
    MARKERS,
    MARKERS_AGAIN_MS,
    TIME_OUTS,
    TransactionRules,
    TransactionShard,
)
from barnabas.coordinator.transactions.state import Transaction, TransactionState
from barnabas.model.ids import TopicPartition

S = TransactionState
ID = "orders"
A = TopicPartition("a", 0)
START_MS = 1_000_000


class Shard:
    """A shard and its log, which may be closed."""

    def __init__(self) -> None:
        self.shard = TransactionShard(TransactionRules)
        self.is_closed = False

    def perform(self, effects: Effects) -> Effects:
        """What comes of a step: as decided or, if its records cannot be written, what the step does then."""
        if effects.records and self.is_closed:
            assert effects.rescue is not None, "the whole shard would be loaded again"
            rescued = effects.rescue()
            rescued.timers[:0] = effects.timers
            return rescued
        for key, value in effects.records:
            self.shard.replay(key, value, offset=0, producer=None, timestamp_ms=START_MS)
        return effects

    def ask(self, request: Any) -> Effects:
        return self.perform(self.shard.handle(1, request, START_MS))

    def open(self) -> ProducerIdEpoch:
        """A transaction in one partition."""
        outcome = self.ask(InitProducer(transactional_id=ID, timeout_ms=1000, fresh_producer_id=7)).answers[0].response
        assert isinstance(outcome, Outcome)
        producer = ProducerIdEpoch(outcome.producer_id, outcome.producer_epoch)
        self.ask(AddPartitions(transactional_id=ID, producer=producer, partitions=frozenset({A}), version=2))
        return producer

    def end(self, producer: ProducerIdEpoch) -> Effects:
        return self.ask(EndTransaction(transactional_id=ID, producer=producer, is_commit=True, version=2))

    @property
    def transaction(self) -> Transaction:
        found = self.shard.get(ID)
        assert found is not None
        return found


def test_an_end_that_cannot_be_written_leaves_the_transaction_open_and_can_be_asked_for_again() -> None:
    desk = Shard()
    producer = desk.open()
    before = desk.transaction
    desk.is_closed = True
    refused = desk.end(producer)
    assert (refused.sends, refused.answers) == ([], [])
    assert desk.transaction == before
    desk.is_closed = False
    decided = desk.end(producer)
    assert desk.transaction.state is S.PREPARE_COMMIT
    assert [type(each) for each in decided.sends] == [WriteMarkers]


def test_a_transaction_whose_completion_cannot_be_written_is_ended_again_a_moment_later() -> None:
    desk = Shard()
    producer = desk.open()
    (markers,) = desk.end(producer).sends
    written = MarkersWritten(transactional_id=ID, producer=markers.producer)
    desk.is_closed = True
    timers = {timer.key: timer.deadline_ms for timer in desk.ask(written).timers}
    assert timers[MARKERS, ID] == START_MS + MARKERS_AGAIN_MS
    assert desk.transaction.state is S.PREPARE_COMMIT
    desk.is_closed = False
    again = desk.perform(desk.shard.on_timer((MARKERS, ID), START_MS + MARKERS_AGAIN_MS))
    assert again.sends == [markers]
    desk.ask(written)
    assert desk.transaction.state is S.COMPLETE_COMMIT
    assert desk.perform(desk.shard.on_timer((MARKERS, ID), START_MS + MARKERS_AGAIN_MS)).sends == []


def test_a_time_out_that_cannot_be_written_is_found_again() -> None:
    desk = Shard()
    desk.open()
    desk.is_closed = True
    late_ms = START_MS + 60_000
    timers = [timer.key for timer in desk.perform(desk.shard.on_timer(TIME_OUTS, late_ms)).timers]
    assert TIME_OUTS in timers
    assert desk.transaction.state is S.ONGOING
    desk.is_closed = False
    desk.perform(desk.shard.on_timer(TIME_OUTS, late_ms))
    assert desk.transaction.state is S.PREPARE_ABORT
