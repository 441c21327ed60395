"""What makes a node one of several is checked when it is read, and says what would be right."""

from __future__ import annotations

import pytest

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.security import Protocol
from barnabas.model.settings import InvalidSetting

BOTH = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"}


def test_a_node_is_both_broker_and_controller_unless_it_is_told_otherwise() -> None:
    cluster = BrokerSettings.of({}).cluster
    assert cluster.is_broker
    assert cluster.is_controller
    assert cluster.bootstrap_servers == ()
    assert cluster.inter_broker_listener_name == "PLAINTEXT"


def test_the_timings_of_the_quorum_are_settings_of_the_node() -> None:
    given = {"controller.quorum.election.timeout.ms": "123", "controller.quorum.fetch.timeout.ms": "456"}
    raft = BrokerSettings.of(given).cluster.raft
    assert (raft.election_timeout_ms, raft.fetch_timeout_ms) == (123, 456)


def test_only_controllers_ask_to_be_voters() -> None:
    servers = {"controller.quorum.bootstrap.servers": "localhost:9093"}
    assert BrokerSettings.of({**BOTH, **servers}).cluster.raft.auto_join_enable
    assert not BrokerSettings.of({**servers, "process.roles": "broker"}).cluster.raft.auto_join_enable


def test_servers_are_hosts_and_ports() -> None:
    given = {**BOTH, "controller.quorum.bootstrap.servers": "one:9093, [::1]:9094"}
    assert BrokerSettings.of(given).cluster.bootstrap_servers == (("one", 9093), ("::1", 9094))


def test_a_controller_listener_that_nothing_is_said_of_is_plain() -> None:
    assert BrokerSettings.of(BOTH).security.listeners["CONTROLLER"].protocol is Protocol.PLAINTEXT


def test_controllers_are_not_told_to_clients_nor_clients_to_controllers() -> None:
    settings = BrokerSettings.of({**BOTH, "advertised.listeners": "PLAINTEXT://me:1"})
    bound = {"PLAINTEXT": ("127.0.0.1", 5), "CONTROLLER": ("127.0.0.1", 6)}
    assert settings.advertised_to_clients(bound) == (("PLAINTEXT", "me", 1),)
    assert settings.advertised_to_controllers(bound) == (("CONTROLLER", "127.0.0.1", 6),)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"controller.quorum.voters": "localhost:9093"}, "not id@host:port"),
        ({"controller.quorum.voters": "1@localhost"}, "not host:port"),
        ({"controller.quorum.voters": "1@a:1,1@b:1"}, "there twice"),
        ({**BOTH, "controller.quorum.voters": "2@localhost:9093"}, "must be one of the voters"),
        ({"process.roles": "broker", "controller.quorum.voters": "1@localhost:9093"}, "cannot be a voter"),
        ({"controller.quorum.bootstrap.servers": "localhost"}, "not host:port"),
        ({"controller.quorum.bootstrap.servers": "localhost:9093"}, "add CONTROLLER://host:port"),
        ({"process.roles": "broker"}, "needs one to ask"),
        ({"process.roles": "janitor"}, "must be one of broker, controller"),
        ({"process.roles": "broker,broker"}, "there twice"),
        ({"process.roles": "controller"}, "nobody serves PLAINTEXT"),
        ({**BOTH, "process.roles": "broker"}, "only a controller listens"),
        ({"listeners": "CONTROLLER://:1"}, "a broker needs one"),
        ({"inter.broker.listener.name": "INSIDE"}, "none of the broker's listeners"),
        ({**BOTH, "inter.broker.listener.name": "CONTROLLER"}, "none of the broker's listeners"),
        ({"broker.heartbeat.interval.ms": "5000"}, "at most half"),
        ({**BOTH, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}, "what is spoken on CONTROLLER"),
    ],
)
def test_what_cannot_go_together_is_refused_with_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=sentence):
        BrokerSettings.of(given)


def test_voters_of_a_file_for_kafka_are_the_controllers_to_ask() -> None:
    voters = {"controller.quorum.voters": "2@b:2,1@a:1,3@c:3"}
    first = BrokerSettings.of({**BOTH, **voters}).cluster
    assert [str(server) for server in first.bootstrap_servers] == ["b:2", "c:3"]
    assert first.may_found_cluster
    second = BrokerSettings.of({**BOTH, **voters, "node.id": "2"}).cluster
    assert [str(server) for server in second.bootstrap_servers] == ["a:1", "c:3"]
    assert not second.may_found_cluster
    broker = BrokerSettings.of({**voters, "process.roles": "broker", "node.id": "9"}).cluster
    assert [str(server) for server in broker.bootstrap_servers] == ["b:2", "a:1", "c:3"]
    assert not broker.may_found_cluster
    alone = BrokerSettings.of({**BOTH, "controller.quorum.voters": "1@a:1"}).cluster
    assert alone.bootstrap_servers == ()


def test_the_listener_of_brokers_may_be_named_by_its_protocol() -> None:
    listeners = {"listeners": "PLAINTEXT://:1,SASL_PLAINTEXT://:2", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    named = BrokerSettings.of({**listeners, "security.inter.broker.protocol": "SASL_PLAINTEXT"})
    assert named.cluster.inter_broker_listener_name == "SASL_PLAINTEXT"
    with pytest.raises(InvalidSetting, match="only one may be set"):
        BrokerSettings.of(
            {**listeners, "security.inter.broker.protocol": "PLAINTEXT", "inter.broker.listener.name": "PLAINTEXT"}
        )
