"""The transaction coordinator's machine at a desk: requests in, answers and records out, time by hand."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from barnabas.coordinator.runtime.effects import Effects, ProducerIdEpoch
from barnabas.coordinator.transactions.records import encode_key, encode_value
from barnabas.coordinator.transactions.requests import (
    AbortTimedOut,
    AddPartitions,
    EndTransaction,
    FetchProducerId,
    InitProducer,
    MarkersWritten,
    NeedsProducerId,
    Outcome,
    VerifyPartitions,
    WriteMarkers,
)
from barnabas.coordinator.transactions.shard import TransactionRules, TransactionShard
from barnabas.coordinator.transactions.state import Transaction, TransactionState
from barnabas.model import errors
from barnabas.model.ids import TopicPartition

S = TransactionState
ID = "orders"
A = TopicPartition("a", 0)
B = TopicPartition("b", 1)
MINUTE_MS = 60_000


class Desk:
    """A shard with its log, its clock and what it has sent: as the runtime, without waiting."""

    def __init__(self, rules: TransactionRules | None = None) -> None:
        self.rules = rules or TransactionRules()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.now_ms = 1_000_000
        self.fresh = 100
        self.sent: list[WriteMarkers] = []
        self.restart()

    def restart(self) -> None:
        self.shard = TransactionShard(lambda: self.rules)
        self.timers: dict[Hashable, int] = {}
        for key, value in self.log:
            self.shard.replay(key, value, offset=0, producer=None, timestamp_ms=0)
        self.perform(self.shard.loaded(self.now_ms))

    def perform(self, effects: Effects) -> Any:
        for key, value in effects.records:
            self.log.append((key, value))
            self.shard.replay(key, value, offset=len(self.log), producer=None, timestamp_ms=self.now_ms)
        for timer in effects.timers:
            if timer.deadline_ms is None:
                self.timers.pop(timer.key, None)
            else:
                self.timers[timer.key] = timer.deadline_ms
        for message in effects.sends:
            if isinstance(message, FetchProducerId):
                self.fresh += 1
                self.ask(AbortTimedOut(transactional_id=message.transactional_id, fresh_producer_id=self.fresh))
            else:
                self.sent.append(message)
        return effects.answers[0].response if effects.answers else None

    def ask(self, request: Any) -> Any:
        answer = self.perform(self.shard.handle(1, request, self.now_ms))
        if isinstance(answer, NeedsProducerId):
            self.fresh += 1
            answer = self.ask(replace(request, fresh_producer_id=self.fresh))
        return answer

    def advance(self, milliseconds: int) -> None:
        end_ms = self.now_ms + milliseconds
        while self.timers and min(self.timers.values()) <= end_ms:
            key = min(self.timers, key=lambda each: (self.timers[each], str(each)))
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self.perform(self.shard.on_timer(key, self.now_ms))
        self.now_ms = end_ms

    # --- in the words of a producer -------------------------------------------------------------------------------

    def init(self, expected: ProducerIdEpoch | None = None, timeout_ms: int = MINUTE_MS) -> Outcome:
        return self.ask(InitProducer(transactional_id=ID, timeout_ms=timeout_ms, expected=expected))

    def begin(self) -> ProducerIdEpoch:
        outcome = self.init()
        assert outcome.error is errors.NONE
        return ProducerIdEpoch(outcome.producer_id, outcome.producer_epoch)

    def add(self, producer: ProducerIdEpoch, *partitions: TopicPartition, version: int = 2) -> errors.WireError:
        request = AddPartitions(
            transactional_id=ID, producer=producer, partitions=frozenset(partitions), version=version
        )
        return self.ask(request).error

    def verify(self, producer: ProducerIdEpoch, partition: TopicPartition) -> errors.WireError:
        request = VerifyPartitions(transactional_id=ID, producer=producer, partitions=frozenset({partition}))
        return self.ask(request)[partition]

    def end(self, producer: ProducerIdEpoch, *, is_commit: bool = True, version: int = 2) -> Outcome:
        return self.ask(EndTransaction(transactional_id=ID, producer=producer, is_commit=is_commit, version=version))

    def set_epoch(self, epoch: int) -> None:
        """Give the producer of an idle id an epoch, as if it had ended many transactions."""
        idle = replace(self.transaction, producer_epoch=epoch)
        self.log.append((encode_key(ID), encode_value(idle, feature_level=self.rules.feature_level)))
        self.shard.replay(*self.log[-1], offset=len(self.log), producer=None, timestamp_ms=self.now_ms)

    def deliver(self) -> WriteMarkers:
        markers = self.sent.pop(0)
        self.ask(MarkersWritten(transactional_id=markers.transactional_id, producer=markers.producer))
        return markers

    @property
    def transaction(self) -> Transaction:
        found = self.shard.get(ID)
        assert found is not None
        return found


def after(producer: ProducerIdEpoch, epochs: int = 1) -> ProducerIdEpoch:
    return ProducerIdEpoch(producer.producer_id, producer.producer_epoch + epochs)
