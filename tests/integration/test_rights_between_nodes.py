"""What only nodes ask each other, on the controllers' listener: nobody else may, whatever else he may do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rights import C, Granted, May, codes, signed_in

from barnabas.broker.requests.routes import CONTROLLER_ROUTES, ROUTES
from barnabas.model import errors
from barnabas.security.acl import CLUSTER_NAME, Permission
from barnabas.security.plain import LOGIN_MODULE
from barnabas.testing import Broker
from barnabas.transport.channel import PeerGone
from barnabas.wire.api import ApiKey
from barnabas.wire.messages import request_of

CONTROLLER = "CONTROLLER"
BETWEEN_NODES = (
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.UPDATE_RAFT_VOTER,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.ENVELOPE,
)
# A fetch from the metadata log, and markers, which brokers write at each other, are asked for in Kafka's table as well.
ELSEWHERE = {ApiKey.FETCH, ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    users = " ".join(f"user_{name}={name}-secret" for name in ("admin", "alice"))
    settings = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:0,{CONTROLLER}://127.0.0.1:0",
        "listener.security.protocol.map": f"SASL_PLAINTEXT:SASL_PLAINTEXT,{CONTROLLER}:SASL_PLAINTEXT",
        "controller.listener.names": CONTROLLER,
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f"{LOGIN_MODULE} required username=admin password=admin-secret {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with Broker(settings=settings) as running:
        yield running


@pytest.fixture
def rules(node: Broker) -> Iterator[Granted]:
    with signed_in(node, "admin") as admin:
        granted = Granted(admin)
        yield granted
        granted.nothing()


def is_refused(node: Broker, user: str, key: ApiKey) -> bool:
    """An answer that refuses it, or (where a message has no place for that) none at all."""
    request: Any = request_of(key)()
    with signed_in(node, user, listener=CONTROLLER) as talk:
        try:
            found = codes(talk.ask(request))
        except PeerGone:
            return True
    return errors.CLUSTER_AUTHORIZATION_FAILED.code in found


def test_nothing_of_the_controllers_listener_is_left_out() -> None:
    assert set(CONTROLLER_ROUTES) - set(ROUTES) - ELSEWHERE == set(BETWEEN_NODES)


@pytest.mark.parametrize("key", BETWEEN_NODES, ids=lambda key: key.name)
def test_only_who_may_act_for_the_cluster_is_answered(node: Broker, rules: Granted, key: ApiKey) -> None:
    assert not is_refused(node, "admin", key)  # a super user
    assert is_refused(node, "alice", key)  # no rule
    rules(May.ALTER, C)
    assert is_refused(node, "alice", key)  # another right
    rules(May.CLUSTER_ACTION, C)
    assert not is_refused(node, "alice", key)
    rules(May.CLUSTER_ACTION, C, permission=Permission.DENY)
    assert is_refused(node, "alice", key)  # a denial beats it
    rules.nothing()
    rules(May.ALL, C, CLUSTER_NAME, principal="User:*", host="127.0.0.1")
    assert not is_refused(node, "alice", key)  # everybody everything, from here
    rules.nothing()
    rules(May.ALL, C, host="10.0.0.1")
    assert is_refused(node, "alice", key)  # from elsewhere


def test_the_node_still_leads_after_all_of_that(node: Broker) -> None:
    with signed_in(node, "admin") as talk:
        talk.create("after")
    assert node.node.services.controller.is_active
