"""Transactions do as the broker's settings say: their topic, their time-outs, and how often a leader asks again."""

from __future__ import annotations

import uuid
from typing import Any

from talk import Talk
from transactional import Transactional, code, committed_end

from barnabas.coordinator.transactions.requests import Outcome
from barnabas.model import errors
from barnabas.model.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.testing import Broker
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest


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
