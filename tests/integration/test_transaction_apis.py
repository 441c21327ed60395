"""The APIs of transactions over the wire: what each says, in which version, and what a restart leaves of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from talk import Talk, batch, produce_request

from barnabas.coordinator.transaction_requests import Outcome
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.testing import Broker
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest

NewName = Callable[[], str]


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

    def end(self, *, is_commit: bool = True, version: int = 5) -> Any:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        return again(lambda: self.talk.ask(request, version))

    def add(self, *topics: tuple[str, int], version: int = 3) -> list[int]:
        wanted = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in topics
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=wanted,
        )
        answer = self.talk.ask(request, version)
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


@pytest.fixture
def producer(talk: Talk) -> Transactional:
    made = Transactional(talk, f"id-{uuid.uuid4().hex[:8]}")
    assert made.init() == 0
    return made


# --- the producer's side ----------------------------------------------------------------------------------------------


def test_a_transaction_is_described_while_it_goes_on(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name, 2)
    assert producer.describe().transaction_state == "Empty"
    assert producer.produce(name, b"v", partition=1) == 0
    row = producer.describe()
    assert (row.transaction_state, row.producer_id, row.producer_epoch) == ("Ongoing", producer.id, producer.epoch)
    assert [(topic.topic, topic.partitions) for topic in row.topics] == [(name, [1])]
    assert row.transaction_start_time_ms > 0
    answer = producer.end()
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, producer.id, producer.epoch + 1)
    assert producer.describe().transaction_state in ("PrepareCommit", "CompleteCommit")


def test_an_unknown_id_is_not_found(talk: Talk, producer: Transactional) -> None:
    answer = talk.ask(DescribeTransactionsRequest(transactional_ids=["nobody", ""]))
    codes = [row.error_code for row in answer.transaction_states]
    assert codes == [code(errors.TRANSACTIONAL_ID_NOT_FOUND), code(errors.INVALID_REQUEST)]


def test_a_transactional_batch_without_an_id_is_refused(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name)
    records = batch(
        b"v", producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=0, is_transactional=True
    )
    assert talk.produce(name, records).error_code == code(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    assert talk.read(name) == []


def test_a_transaction_and_plain_batches_do_not_mix(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name)
    assert producer.produce(name, b"in") == 0
    records = batch(b"out", producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=1)
    assert talk.produce(name, records).error_code == code(errors.INVALID_TXN_STATE)


def test_in_version_2_a_transaction_begins_with_sequence_0(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name)
    assert producer.produce(name, b"v", sequence=5) == code(errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert producer.produce(name, b"v", sequence=0) == 0


def test_strangers_write_nothing(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name)
    producer.epoch += 1
    assert producer.produce(name, b"v") == code(errors.INVALID_PRODUCER_EPOCH)
    producer.id += 1000
    assert producer.produce(name, b"v") == code(errors.INVALID_PRODUCER_ID_MAPPING)
    assert producer.produce(name, b"v", version=11) == code(errors.INVALID_PRODUCER_ID_MAPPING)
    assert talk.read(name) == []


@pytest.mark.parametrize("version", [3, 10, 11])
def test_in_version_1_partitions_are_announced_first(
    talk: Talk, name: str, producer: Transactional, version: int
) -> None:
    talk.create(name)
    refused = errors.TRANSACTION_ABORTABLE if version >= 11 else errors.INVALID_TXN_STATE
    assert producer.produce(name, b"v", version=version) == code(refused)
    assert producer.add((name, 0)) == [0]
    assert producer.produce(name, b"v", version=version) == 0
    assert producer.end(version=4).error_code == 0


def test_one_partition_that_is_not_there_fails_them_all(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name)
    talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    missing, untried = code(errors.UNKNOWN_TOPIC_OR_PARTITION), code(errors.OPERATION_NOT_ATTEMPTED)
    assert producer.add((name, 0), ("no-such-topic", 0)) == [untried, missing]
    assert producer.add((OFFSETS_TOPIC, 0)) == [code(errors.TOPIC_AUTHORIZATION_FAILED)]
    assert producer.describe().transaction_state == "Empty"


@pytest.mark.parametrize(("version", "error"), [(1, errors.INVALID_PRODUCER_EPOCH), (2, errors.PRODUCER_FENCED)])
def test_old_versions_know_a_fenced_producer_by_its_epoch(
    talk: Talk, name: str, producer: Transactional, version: int, error: WireError
) -> None:
    talk.create(name)
    talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    producer.epoch -= 1
    assert producer.add((name, 0), version=version) == [code(error)]
    assert producer.end(version=version).error_code == code(error)
    offsets = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        group_id="g",
    )
    assert talk.ask(offsets, version).error_code == code(error)


@pytest.mark.parametrize(("version", "error"), [(3, errors.INVALID_PRODUCER_EPOCH), (4, errors.PRODUCER_FENCED)])
def test_a_stale_producer_gets_no_epoch(producer: Transactional, version: int, error: WireError) -> None:
    assert producer.init() == 0
    assert producer.init(version, producer_id=producer.id, producer_epoch=producer.epoch - 1) == code(error)
    assert producer.init(version, producer_id=producer.id, producer_epoch=-1) == code(errors.INVALID_REQUEST)


@pytest.mark.parametrize("timeout_ms", [0, 900_001])
def test_the_broker_limits_time_outs(producer: Transactional, timeout_ms: int) -> None:
    assert producer.init(timeout_ms=timeout_ms) == code(errors.INVALID_TRANSACTION_TIMEOUT)


def test_brokers_ask_for_several_transactions_at_once(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name, 2)
    other = Transactional(talk, f"id-{uuid.uuid4().hex[:8]}")
    assert other.init() == 0

    def ask(*, verify_only: bool) -> list[list[int]]:
        transactions = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=each.transactional_id,
                producer_id=each.id,
                producer_epoch=each.epoch,
                verify_only=verify_only,
                topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[0, 1])],
            )
            for each in (producer, other)
        ]
        answer = talk.ask(AddPartitionsToTxnRequest(transactions=transactions), 5)
        assert answer.error_code == 0
        return [
            [row.partition_error_code for row in result.topic_results[0].results_by_partition]
            for result in answer.results_by_transaction
        ]

    abortable = code(errors.TRANSACTION_ABORTABLE)
    assert ask(verify_only=True) == [[abortable, abortable]] * 2
    assert ask(verify_only=False) == [[0, 0]] * 2
    assert ask(verify_only=True) == [[0, 0]] * 2


# --- the administrator's side -----------------------------------------------------------------------------------------


def test_transactions_are_listed_by_state_producer_duration_and_pattern(
    talk: Talk, name: str, producer: Transactional
) -> None:
    talk.create(name)
    assert producer.produce(name, b"v") == 0

    def listed(**filters: Any) -> list[str]:
        answer = talk.ask(ListTransactionsRequest(**filters))
        assert answer.error_code == 0
        return [row.transactional_id for row in answer.transaction_states]

    mine = producer.transactional_id
    assert mine in listed()
    assert listed(producer_id_filters=[producer.id]) == [mine]
    assert mine in listed(state_filters=["Ongoing"])
    assert mine not in listed(state_filters=["Empty", "CompleteCommit"])
    assert mine not in listed(duration_filter=3_600_000)
    assert listed(transactional_id_pattern=f"{mine[:-1]}.") == [mine]
    assert listed(transactional_id_pattern=mine[:-1]) == [], "a pattern matches the whole id"
    answer = talk.ask(ListTransactionsRequest(state_filters=["Ongoing", "Nowhere"]))
    assert answer.unknown_state_filters == ["Nowhere"]
    answer = talk.ask(ListTransactionsRequest(transactional_id_pattern="("))
    assert answer.error_code == code(errors.INVALID_REGULAR_EXPRESSION)


def markers(producer: Transactional, topic: str, *, epoch: int, version: int) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=producer.id,
                producer_epoch=epoch,
                transaction_result=False,
                coordinator_epoch=0,
                transaction_version=version,
                topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[0, 7])],
            )
        ]
    )


def test_an_administrator_ends_a_transaction_in_a_partition(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name)
    assert producer.produce(name, b"v") == 0
    assert talk.fetch(name, isolation_level=1).last_stable_offset == 0
    request = markers(producer, name, epoch=producer.epoch, version=0)
    rows = talk.ask(request, 1).markers[0].topics[0].partitions
    assert [row.error_code for row in rows] == [0, code(errors.UNKNOWN_TOPIC_OR_PARTITION)]
    row = talk.fetch(name, isolation_level=1)
    assert row.last_stable_offset == row.high_watermark == 2
    assert [(each.producer_id, each.first_offset) for each in row.aborted_transactions] == [(producer.id, 0)]


def test_a_marker_of_version_2_needs_an_epoch_of_its_own(talk: Talk, name: str, producer: Transactional) -> None:
    talk.create(name)
    assert producer.produce(name, b"v") == 0

    def write(epoch: int) -> int:
        answer = talk.ask(markers(producer, name, epoch=epoch, version=2), 2)
        return int(answer.markers[0].topics[0].partitions[0].error_code)

    assert write(producer.epoch) == code(errors.INVALID_PRODUCER_EPOCH)
    assert write(producer.epoch + 1) == 0
    assert write(producer.epoch + 1) == 0, "the same one again is a retry"
    assert write(producer.epoch) == code(errors.INVALID_PRODUCER_EPOCH)


# --- restarts ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def restart(tmp_path: Path) -> Iterator[Callable[[], Broker]]:
    running: list[Broker] = []

    def start() -> Broker:
        while running:
            running.pop().stop()
        broker = Broker(data_dir=tmp_path)
        broker.start()
        running.append(broker)
        return broker

    yield start
    while running:
        running.pop().stop()


def test_an_open_transaction_outlives_the_broker(restart: Callable[[], Broker]) -> None:
    with Talk(restart().bootstrap_servers) as talk:
        talk.create("t")
        producer = Transactional(talk, "id")
        assert producer.init() == 0
        assert producer.produce("t", b"before") == 0
    with Talk(restart().bootstrap_servers) as talk:
        until_there(talk, "id")
        producer.talk = talk
        assert producer.describe().transaction_state == "Ongoing"
        assert producer.produce("t", b"after", sequence=1) == 0
        assert talk.fetch("t", isolation_level=1).last_stable_offset == 0
        assert producer.end().error_code == 0
        assert [record.value for record in talk.read("t")][:2] == [b"before", b"after"]
        assert committed_end(talk) == 3


def test_a_transaction_left_open_times_out_after_a_restart(restart: Callable[[], Broker]) -> None:
    with Talk(restart().bootstrap_servers) as talk:
        talk.create("t")
        producer = Transactional(talk, "id")
        assert producer.init() == 0
        assert producer.produce("t", b"left") == 0
    broker = restart()
    with Talk(broker.bootstrap_servers) as talk:
        until_there(talk, "id")
        broker.clock.advance("71s")
        assert committed_end(talk) == 2
        producer.talk = talk
        assert producer.produce("t", b"late", sequence=1) == code(errors.INVALID_PRODUCER_EPOCH)


def committed_end(talk: Talk) -> int:
    """The last stable offset, once nothing is open any more."""
    for _ in range(1000):
        row = talk.fetch("t", isolation_level=1, max_wait_ms=5, min_bytes=1 << 20)
        if row.last_stable_offset == row.high_watermark:
            return int(row.last_stable_offset)
    raise AssertionError(row)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_the_topic_of_transactions_is_made_as_the_settings_say() -> None:
    settings = {
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.segment.bytes": "1048576",
        "transaction.max.timeout.ms": "1000",
        "transaction.partition.verification.enable": "false",
    }
    with Broker(settings=settings) as broker, Talk(broker.bootstrap_servers) as talk:
        producer = Transactional(talk, "id")
        image = broker.node.services.image
        assert len(image.topics.by_name[TRANSACTIONS_TOPIC].partitions) == 3
        assert dict(image.configs.of_topic(TRANSACTIONS_TOPIC)) == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": "1048576",
            "unclean.leader.election.enable": "false",
        }
        assert producer.init(timeout_ms=1001) == code(errors.INVALID_TRANSACTION_TIMEOUT)
        assert producer.init(timeout_ms=1000) == 0
        talk.create("t")
        assert producer.produce("t", b"unverified", version=11) == 0


def test_a_production_broker_that_stands_alone_has_no_transactions() -> None:
    settings = {"transaction.state.log.replication.factor": "3"}
    with Broker(settings=settings) as broker, Talk(broker.bootstrap_servers) as talk:
        answer = talk.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["id"]))
        assert answer.coordinators[0].error_code == code(errors.COORDINATOR_NOT_AVAILABLE)
        request = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=1000)
        assert talk.ask(request).error_code == code(errors.NOT_COORDINATOR)


def test_offsets_may_be_announced_before_anybody_has_asked_for_the_groups_coordinator() -> None:
    with Broker() as broker, Talk(broker.bootstrap_servers) as talk:
        producer = Transactional(talk, "id")
        assert producer.init() == 0
        request = AddOffsetsToTxnRequest(
            transactional_id="id", producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
        )
        assert talk.ask(request).error_code == 0
        assert [topic.topic for topic in producer.describe().topics] == [OFFSETS_TOPIC]
        assert producer.end(version=4).error_code == 0


def test_time_outs_and_expiry_are_looked_for_as_often_as_the_settings_say() -> None:
    settings = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
        "transactional.id.expiration.ms": "5000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    }
    with Broker(settings=settings) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        producer = Transactional(talk, "id")
        assert producer.init(timeout_ms=2000) == 0
        assert producer.produce("t", b"v") == 0
        broker.clock.advance(2200)
        assert committed_end(talk) == 2
        broker.clock.advance(7000)
        broker.clock.advance(1000)
        assert producer.describe().error_code == code(errors.TRANSACTIONAL_ID_NOT_FOUND)


def test_a_leader_asks_again_as_long_as_the_settings_say(talk: Talk, name: str, shared_broker: Broker) -> None:
    talk.create(name)
    producer = Transactional(talk, f"id-{uuid.uuid4().hex[:8]}")
    assert producer.init() == 0
    coordinator: Any = shared_broker.node.services.transactions
    asked: list[int] = []
    add = coordinator.add_partitions

    async def busy(request: Any) -> Any:
        asked.append(1)
        return Outcome(errors.CONCURRENT_TRANSACTIONS) if len(asked) < 4 else await add(request)

    coordinator.add_partitions = busy
    try:
        assert producer.produce(name, b"v") == 0
        assert len(asked) == 4

        async def busy_for_ever(request: Any) -> Any:
            asked.append(1)
            return Outcome(errors.CONCURRENT_TRANSACTIONS)

        coordinator.add_partitions = busy_for_ever
        assert producer.end().error_code == 0
        producer.epoch += 1
        asked.clear()
        assert producer.produce(name, b"v") == code(errors.CONCURRENT_TRANSACTIONS)
        assert len(asked) in (5, 6, 7), "at once, when the last one has ended, and about every 20 of 100 milliseconds"
    finally:
        coordinator.add_partitions = add
