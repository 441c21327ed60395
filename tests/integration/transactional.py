"""A transactional id over one connection, and how one waits for what it began. Shared by the tests of transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from talk import Talk, batch, produce_request

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest


def code(error: WireError) -> int:
    return error.code


class Transactional:
    """A transactional id over one connection."""

    def __init__(self, talk: Talk, transactional_id: str) -> None:
        self.talk = talk
        self.transactional_id = transactional_id
        self.id = self.epoch = -1
        until_there(talk, transactional_id)

    def init(self, version: int = 5, **more: Any) -> int:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=more.pop("timeout_ms", 60_000), **more
        )
        answer = again(lambda: self.talk.ask(request, version))
        if answer.error_code == 0:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)

    def produce_request(self, topic: str, value: bytes, *, partition: int = 0, sequence: int = 0) -> ProduceRequest:
        records = batch(
            value, producer_id=self.id, producer_epoch=self.epoch, base_sequence=sequence, is_transactional=True
        )
        return produce_request(topic, records, partition=partition, transactional_id=self.transactional_id)

    def produce(self, topic: str, value: bytes, *, version: int = 12, **more: Any) -> int:
        answer = self.talk.ask(self.produce_request(topic, value, **more), version)
        return int(answer.responses[0].partition_responses[0].error_code)

    def end_request(self, *, is_commit: bool = True) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )

    def end(self, *, is_commit: bool = True, version: int = 5) -> Any:
        request = self.end_request(is_commit=is_commit)
        return again(lambda: self.talk.ask(request, version))

    def add_request(self, *topics: tuple[str, int]) -> AddPartitionsToTxnRequest:
        wanted = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in topics
        ]
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=wanted,
        )

    def add(self, *topics: tuple[str, int], version: int = 3) -> list[int]:
        answer = self.talk.ask(self.add_request(*topics), version)
        return [topic.results_by_partition[0].partition_error_code for topic in answer.results_by_topic_v3_and_below]

    def describe(self) -> Any:
        return self.talk.ask(DescribeTransactionsRequest(transactional_ids=[self.transactional_id])).transaction_states[
            0
        ]


def until_there(talk: Talk, transactional_id: str) -> None:
    answer = talk.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id]))
    assert answer.coordinators[0].error_code == 0, answer
    again(lambda: _Coded(talk.ask(DescribeTransactionsRequest(transactional_ids=[transactional_id]))))


class _Coded:
    def __init__(self, answer: Any) -> None:
        self.error_code = answer.transaction_states[0].error_code


def again(ask: Callable[[], Any]) -> Any:
    """Ask until the coordinator is loaded and the transaction before has ended."""
    passing = (errors.CONCURRENT_TRANSACTIONS.code, errors.COORDINATOR_LOAD_IN_PROGRESS.code)
    for _ in range(1000):
        answer = ask()
        if answer.error_code not in passing:
            return answer
    raise AssertionError(answer)


def committed_end(talk: Talk) -> int:
    """The last stable offset, once nothing is open any more."""
    for _ in range(1000):
        row = talk.fetch("t", isolation_level=1, max_wait_ms=5, min_bytes=1 << 20)
        if row.last_stable_offset == row.high_watermark:
            return int(row.last_stable_offset)
    raise AssertionError(row)
