"""Quotas: whoever has had too much is told so and not heard for a while; everybody else goes on."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from talk import Talk, batch, creatable, fetch_request, produce_request

from barnabas.model import errors
from barnabas.security.plain import LOGIN_MODULE
from barnabas.testing import Broker
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

SMALL = batch(b"x" * 1000)
TIMEOUT_MS = 20_000  # of requests that change topics: the machine may be busy
CLIENT: dict[str, str | None] = {"client-id": "limited"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def limited(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers, client_id="limited") as talk:
        yield talk


@pytest.fixture
def other(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers, client_id="other") as talk:
        yield talk


def set_quota(talk: Talk, entity: dict[str, str | None], key: str, value: float | None) -> None:
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequest.EntryData(
                entity=[
                    AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.items()
                ],
                ops=[AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)],
            )
        ]
    )
    (row,) = talk.ask(request).entries
    assert row.error_code == 0, row


def elapsed_ms(talk: Talk) -> float:
    start = time.monotonic()
    talk.ask(ListGroupsRequest())
    return (time.monotonic() - start) * 1000


def test_a_producer_above_its_quota_is_told_and_held(broker: Broker, limited: Talk, other: Talk, name: str) -> None:
    other.create(name)
    set_quota(other, CLIENT, "producer_byte_rate", 1000)
    first = limited.ask(produce_request(name, batch(b"x" * 9000)), 12)
    assert first.throttle_time_ms == 0
    second = limited.ask(produce_request(name, SMALL), 12)
    assert second.responses[0].partition_responses[0].error_code == 0, "it is written all the same"
    assert 0 < second.throttle_time_ms < 1000
    assert elapsed_ms(other) < second.throttle_time_ms
    assert elapsed_ms(limited) >= second.throttle_time_ms * 0.5
    assert other.ask(produce_request(name, batch(b"x" * 50_000)), 12).throttle_time_ms == 0
    broker.clock.advance("12s")
    assert limited.ask(produce_request(name, SMALL), 12).throttle_time_ms == 0


def test_a_producer_that_wants_no_answer_is_held_too(broker: Broker, limited: Talk, other: Talk, name: str) -> None:
    other.create(name)
    set_quota(other, CLIENT, "producer_byte_rate", 1000)
    limited.tell(produce_request(name, batch(b"x" * 10_200), acks=0), 12)
    assert elapsed_ms(limited) >= 100


def test_a_consumer_above_its_quota_gets_nothing_for_a_while(
    broker: Broker, limited: Talk, other: Talk, name: str
) -> None:
    other.create(name)
    for _ in range(30):
        other.produce(name, SMALL)
    set_quota(other, CLIENT, "consumer_byte_rate", 1000)
    answer = limited.ask(fetch_request(name, 0, partition_max_bytes=9000), 12)
    first = answer.responses[0].partitions[0]
    assert answer.throttle_time_ms == 0
    assert 7000 < len(first.records) <= 10_000, "no more than its quota ever allows"
    answer = limited.ask(fetch_request(name, 8, partition_max_bytes=9000), 12)
    row = answer.responses[0].partitions[0]
    assert answer.throttle_time_ms > 0
    assert (row.error_code, row.records, row.high_watermark) == (0, b"", 30)
    broker.clock.advance("12s")
    assert len(limited.fetch(name, 8).records or b"") > 1000
    assert len(other.fetch(name, 0).records or b"") > 25_000


def test_who_keeps_the_broker_busy_is_held(broker: Broker, limited: Talk, other: Talk, name: str) -> None:
    set_quota(other, CLIENT, "request_percentage", 0.0001)
    answers = [limited.ask(ListGroupsRequest()) for _ in range(2)]
    assert 0 < answers[-1].throttle_time_ms <= 1000, "a window at most"
    assert other.ask(ListGroupsRequest()).throttle_time_ms == 0


def test_quotas_of_users_and_defaults(broker: Broker, limited: Talk, other: Talk, name: str) -> None:
    other.create(name)
    set_quota(other, {"user": None}, "producer_byte_rate", 1000)
    set_quota(other, {"user": "ANONYMOUS", "client-id": "other"}, "producer_byte_rate", 1_000_000)
    assert limited.ask(produce_request(name, batch(b"x" * 11_000)), 12).throttle_time_ms > 0
    assert other.ask(produce_request(name, batch(b"x" * 11_000)), 12).throttle_time_ms == 0


def test_a_quota_that_is_removed_holds_nobody(broker: Broker, limited: Talk, other: Talk, name: str) -> None:
    other.create(name)
    set_quota(other, CLIENT, "producer_byte_rate", 10)
    set_quota(other, CLIENT, "producer_byte_rate", None)
    assert limited.ask(produce_request(name, batch(b"x" * 11_000)), 12).throttle_time_ms == 0
    assert not broker.node.services.quotas.is_active


def test_topics_beyond_the_quota_are_refused_to_those_who_know_the_error(
    broker: Broker, limited: Talk, other: Talk
) -> None:
    set_quota(other, CLIENT, "controller_mutation_rate", 1)
    request = CreateTopicsRequest(
        topics=[creatable("a", partitions=11), creatable("b"), creatable("c")], timeout_ms=TIMEOUT_MS
    )
    answer = limited.ask(request)
    codes = {row.name: row.error_code for row in answer.topics}
    assert codes == {"a": 0, "b": 0, "c": errors.THROTTLING_QUOTA_EXCEEDED.code}
    assert 0 < answer.throttle_time_ms <= 1000
    broker.clock.advance("1s")
    answer = limited.ask(
        DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=each) for each in ("a", "b")], timeout_ms=TIMEOUT_MS
        )
    )
    assert {row.name: row.error_code for row in answer.responses} == {
        "a": 0,
        "b": errors.THROTTLING_QUOTA_EXCEEDED.code,
    }
    broker.clock.advance("30s")
    grown = CreatePartitionsRequest.CreatePartitionsTopic(name="b", count=20, assignments=None)
    again = CreatePartitionsRequest.CreatePartitionsTopic(name="b", count=30, assignments=None)
    assert limited.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=TIMEOUT_MS)).results[0].error_code == 0
    assert (
        limited.ask(CreatePartitionsRequest(topics=[again], timeout_ms=TIMEOUT_MS)).results[0].error_code
        == errors.THROTTLING_QUOTA_EXCEEDED.code
    )
    other.create("free", partitions=20)


def test_clients_that_do_not_know_the_error_are_served_and_wait(broker: Broker, limited: Talk, other: Talk) -> None:
    set_quota(other, CLIENT, "controller_mutation_rate", 1)
    answer = limited.ask(
        CreateTopicsRequest(topics=[creatable("a", partitions=12), creatable("b")], timeout_ms=TIMEOUT_MS), 5
    )
    assert [row.error_code for row in answer.topics] == [0, 0]
    assert 0 < answer.throttle_time_ms <= 2000


def test_an_address_that_connects_too_often_is_turned_away_after_a_wait(broker: Broker, other: Talk) -> None:
    set_quota(other, {"ip": "127.0.0.1"}, "connection_creation_rate", 1)
    for _ in range(10):
        with Talk(broker.bootstrap_servers) as talk:
            talk.ask(ListGroupsRequest())
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as late:
        start = time.monotonic()
        assert late.recv(1) == b"", "closed without a word"
        assert time.monotonic() - start > 0.2
    set_quota(other, {"ip": "127.0.0.1"}, "connection_creation_rate", None)
    with Talk(broker.bootstrap_servers) as talk:
        talk.ask(ListGroupsRequest())


def test_where_all_connections_are_too_many_each_waits_for_its_turn() -> None:
    settings = {"max.connection.creation.rate": "2", "quota.window.num": "2"}
    with Broker(settings=settings) as running:
        waits = []
        for _ in range(4):
            with Talk(running.bootstrap_servers) as talk:
                waits.append(elapsed_ms(talk))
        assert max(waits) > 200, waits


def test_quotas_are_set_by_name_and_survive_a_restart(tmp_path: Any, name: str) -> None:
    with Broker(data_dir=tmp_path) as running, Talk(running.bootstrap_servers) as talk:
        talk.create(name)
        set_quota(talk, {"user": "ANONYMOUS"}, "producer_byte_rate", 1000)
    with Broker(data_dir=tmp_path) as running, Talk(running.bootstrap_servers) as talk:
        (row,) = talk.ask(DescribeClientQuotasRequest()).entries
        assert [(part.entity_type, part.entity_name) for part in row.entity] == [("user", "ANONYMOUS")]
        assert [(each.key, each.value) for each in row.values] == [("producer_byte_rate", 1000.0)]
        assert talk.ask(produce_request(name, batch(b"x" * 11_000)), 12).throttle_time_ms > 0


def test_librdkafka_sees_that_it_is_throttled(broker: Broker, other: Talk, name: str) -> None:
    from confluent_kafka import Producer

    other.create(name)
    set_quota(other, {"client-id": "rd"}, "producer_byte_rate", 2000)
    seen: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "rd",
            "linger.ms": 0,
            "throttle_cb": lambda event: seen.append(event.throttle_time),
        }
    )
    for _ in range(5):
        producer.produce(name, b"x" * 5000)
        producer.flush(10)
    deadline = time.monotonic() + 5
    while not seen and time.monotonic() < deadline:
        producer.poll(0.1)
    assert seen
    assert max(seen) > 0


def test_a_longer_window_lets_more_come_at_once(name: str) -> None:
    settings = {"quota.window.num": "3", "quota.window.size.seconds": "50"}
    with Broker(settings=settings) as running, Talk(running.bootstrap_servers) as talk:
        talk.create(name)
        set_quota(talk, {"user": None}, "producer_byte_rate", 1000)
        assert talk.ask(produce_request(name, batch(b"x" * 90_000)), 12).throttle_time_ms == 0
        assert talk.ask(produce_request(name, batch(b"x" * 20_000)), 12).throttle_time_ms > 0


def test_a_longer_window_lets_more_topics_be_made_at_once() -> None:
    settings = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "30"}
    with Broker(settings=settings) as running, Talk(running.bootstrap_servers) as talk:
        set_quota(talk, {"user": None}, "controller_mutation_rate", 1)
        first = talk.ask(
            CreateTopicsRequest(topics=[creatable("a", partitions=60), creatable("b")], timeout_ms=TIMEOUT_MS)
        )
        assert [row.error_code for row in first.topics] == [0, 0]
        last = talk.ask(CreateTopicsRequest(topics=[creatable("c")], timeout_ms=TIMEOUT_MS))
        assert last.topics[0].error_code == errors.THROTTLING_QUOTA_EXCEEDED.code


def test_the_quota_of_a_user_goes_by_who_signed_in_and_rights_are_checked_all_the_same(name: str) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f"{LOGIN_MODULE} required user_admin=x user_alice=x user_bob=x;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:alice",
    }
    with Broker(settings=settings) as running:
        talks = {}
        for user in ("admin", "alice", "bob"):
            talks[user] = Talk(running.bootstrap_servers)
            talks[user].ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert talks[user].ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0x".encode())).error_code == 0
        talks["admin"].create(name)
        set_quota(talks["admin"], {"user": "alice"}, "producer_byte_rate", 1000)
        answers = {user: talk.ask(produce_request(name, batch(b"x" * 11_000)), 12) for user, talk in talks.items()}
        for talk in talks.values():
            talk.close()
    codes = {user: each.responses[0].partition_responses[0].error_code for user, each in answers.items()}
    assert codes == {"admin": 0, "alice": 0, "bob": errors.TOPIC_AUTHORIZATION_FAILED.code}
    assert {user: each.throttle_time_ms > 0 for user, each in answers.items()} == {
        "admin": False,
        "alice": True,
        "bob": False,
    }
