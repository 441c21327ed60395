"""The APIs of transactions over the wire: what each says, in which version, and what a restart leaves of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from talk import Talk, batch
from transactional import Transactional, code, committed_end, until_there

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import OFFSETS_TOPIC
from barnabas.testing import Broker
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest

NewName = Callable[[], str]


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


def test_the_next_transaction_of_version_1_waits_for_the_markers_of_the_last(
    talk: Talk, name: str, producer: Transactional
) -> None:
    talk.create(name, 50)
    assert producer.add(*((name, index) for index in range(50))) == [0] * 50
    ended, added = talk.ask_all((producer.end_request(), 4), (producer.add_request((name, 0)), 3))
    assert ended.error_code == 0
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    assert producer.describe().transaction_state == "Ongoing"


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
