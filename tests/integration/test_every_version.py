"""Every API in every version over a real socket: a well-formed request gets a well-formed answer.

A field that a handler sets and a version cannot carry would close the connection; so would a codec that is wrong in
one version alone. What the answers mean is the business of the tests beside this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from talk import Talk, batch

from barnabas.broker.requests.api import Route
from barnabas.broker.requests.routes import ROUTES
from barnabas.model.ids import METADATA_TOPIC, Uuid
from barnabas.testing import Broker
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.schema import Array, Fixed, Nested

TOPIC = "every-version"
VERSIONS = [(route, version) for route in ROUTES.values() for version in route.versions]


def identity(case: tuple[Route, int]) -> str:
    route, version = case
    return f"{route.key.name.lower()}-{version}"


@pytest.fixture(scope="module")
def topic_id(shared_broker: Broker) -> Iterator[Uuid]:
    with Talk(shared_broker.bootstrap_servers) as talk:
        talk.create(TOPIC, 2)
        yield talk.topic_id(TOPIC)


@pytest.mark.parametrize("case", VERSIONS, ids=identity)
def test_a_default_request_is_answered(case: tuple[Route, int], talk: Talk) -> None:
    route, version = case
    message = route.request()
    if route.key is ApiKey.PRODUCE:
        message.acks = 1  # type: ignore[attr-defined]
    assert isinstance(talk.ask(message, version), route.response)
    assert talk.is_open


@pytest.mark.parametrize("case", VERSIONS, ids=identity)
@pytest.mark.parametrize("kind", ["known", "unknown"])
def test_a_realistic_request_is_answered(case: tuple[Route, int], kind: str, talk: Talk, topic_id: Uuid) -> None:
    route, version = case
    known = kind == "known"
    message = filled(route.request, version, topic=TOPIC if known else "nowhere", topic_id=topic_id if known else OTHER)
    if route.key is ApiKey.DELETE_TOPICS and known:
        message = filled(route.request, version, topic="gone", topic_id=OTHER)
    if route.key is ApiKey.DESCRIBE_QUORUM and known:
        message.topics[0].topic_name = METADATA_TOPIC  # type: ignore[attr-defined]
    assert isinstance(talk.ask(message, version), route.response)
    assert talk.is_open


OTHER = Uuid(bytes(range(16)))
TOPIC_NAMES = {"name", "topic", "topic_name", "topic_names", "resource_name"}


def filled(cls: type[Message], version: int, **facts: Any) -> Any:
    """A message with one element in every array and something that could be meant in every field."""
    message = cls()
    for field in cls.fields:
        if field.is_in(version):
            value = _value(field.name, field.type, version, facts)
            if value is not None:
                setattr(message, field.name, value)
    return message


def _value(name: str, kind: Any, version: int, facts: dict[str, Any]) -> Any:
    if isinstance(kind, Array):
        element = _value(name, kind.element, version, facts)
        if element is None:
            element = 0 if isinstance(kind.element, Fixed) else "x"
        return [element]
    if isinstance(kind, Nested):
        return filled(kind.target, version, **facts)
    if name in TOPIC_NAMES:
        return facts["topic"]
    return {
        "topic_id": facts["topic_id"],
        "records": bytes(batch(b"value")),
        "acks": -1,
        "timeout_ms": 1000,
        "max_wait_ms": 10,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "partition_max_bytes": 1 << 20,
        "max_bytes": 1 << 20,
        "min_bytes": 1,
        "session_epoch": -1,
        "replica_id": -1,
        "timestamp": -1,
        "current_leader_epoch": -1,
        "last_fetched_epoch": -1,
        "resource_type": 2,
        "response_partition_limit": 100,
        "client_software_name": "talk",
        "client_software_version": "1.0",
        "endpoint_type": 1,
        "num_partitions": -1 if version >= 4 else 1,
        "replication_factor": -1 if version >= 4 else 1,
        "count": 2,
        "group_id": "group",
        "key": "group",
        "transactional_id": None,
    }.get(name)
