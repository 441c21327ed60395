"""Listeners for clients come, go and move while the broker runs; whatever cannot be is refused and changes nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from certificates import Authority
from changing_listeners import OWN, PROTOCOLS, alter, described, free_port, is_listening, told
from signed_clients import Refused, confluent, kafka_python_apart
from talk import Talk
from waiting import until

from barnabas.client.admin.configs import ConfigSource
from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.testing.broker import BrokerProcess
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest

STATIC = "PLAINTEXT://127.0.0.1:0"
MAP = "listener.security.protocol.map"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(settings={"listeners": STATIC}) as running:
        yield running


def add(broker: Broker, name: str = "EXTRA", **more: str) -> int:
    """A listener beside the one of the file; its port."""
    port = free_port()
    changes = {"listeners": f"{STATIC},{name}://127.0.0.1:{port}", MAP: PROTOCOLS, **more}
    assert alter(broker.bootstrap_servers, changes) is None
    until(lambda: told_by_name(broker, name), seconds_max=20)
    return port


def replace_all(broker: Broker, settings: dict[str, str]) -> AlterConfigsResponse.AlterConfigsResourceResponse:
    """The old way of altering settings."""
    request = AlterConfigsRequest
    configs = [request.AlterableConfig(name=setting, value=value) for setting, value in settings.items()]
    resource = request.AlterConfigsResource(resource_type=OWN.kind, resource_name=OWN.name, configs=configs)
    with Talk(broker.bootstrap_servers) as talk:
        row: AlterConfigsResponse.AlterConfigsResourceResponse
        (row,) = talk.ask(AlterConfigsRequest(resources=[resource])).responses
        return row


def told_by_name(broker: Broker, name: str) -> bool:
    """Whether the listener is registered: what clients on it hear."""
    return any(end_point.name == name for end_point in broker.node.services.image.brokers[1].end_points)


def names(broker: Broker) -> list[str]:
    return [listener.name for listener in broker.node.listeners]


# --- coming and going -------------------------------------------------------------------------------------------------


def test_clients_produce_through_a_listener_that_is_added_while_the_broker_runs(tmp_path: Path) -> None:
    first, second = free_port(), free_port()
    with BrokerProcess(tmp_path / "data", port=first) as process:
        address, added = f"127.0.0.1:{first}", f"127.0.0.1:{second}"
        with Talk(address) as old:
            old.create("t")
            listeners = f"PLAINTEXT://{address},EXTRA://{added}"
            assert alter(address, {"listeners": listeners, MAP: PROTOCOLS}) is None
            until(lambda: told(added) == [("127.0.0.1", second)], seconds_max=20)
            assert confluent(added, "t", {}) == b"hello"
            assert kafka_python_apart(added, "t", {"security.protocol": "PLAINTEXT"}) == b"hello"
            assert told(address) == [("127.0.0.1", first)]
            old.ask(ApiVersionsRequest())  # whoever was there before has noticed nothing
        shown = described(address)
        assert shown["listeners"].value == listeners
        assert shown["listeners"].source is ConfigSource.DYNAMIC_BROKER
        assert not shown["listeners"].is_read_only
        assert not shown[MAP].is_read_only
        assert shown["advertised.listeners"].is_read_only

        process.stop()
        process.start()
        until(lambda: told(added) == [("127.0.0.1", second)], seconds_max=20)
        assert confluent(added, "t", {}) == b"hello"
        assert alter(address, {"listeners": None}) is None
        until(lambda: not is_listening(second), seconds_max=20)
        assert confluent(address, "t", {}) == b"hello"


def test_a_listener_that_is_removed_hangs_up_and_the_others_do_not(broker: Broker) -> None:
    port = add(broker)
    with Talk(broker.bootstrap_servers) as kept, Talk(f"127.0.0.1:{port}") as gone:
        gone.ask(ApiVersionsRequest())
        assert alter(broker.bootstrap_servers, {"listeners": None}) is None
        gone.until_closed()
        until(lambda: not is_listening(port), seconds_max=20)
        kept.ask(ApiVersionsRequest())
    until(lambda: not told_by_name(broker, "EXTRA"), seconds_max=20)
    assert names(broker) == ["PLAINTEXT"]


def test_whoever_removes_the_listener_that_it_uses_is_told_so(broker: Broker) -> None:
    port = add(broker)
    assert alter(f"127.0.0.1:{port}", {"listeners": None}) is None
    until(lambda: not is_listening(port), seconds_max=20)


def test_a_listener_moves(broker: Broker) -> None:
    old, new = add(broker), free_port()
    with Talk(f"127.0.0.1:{old}") as talk:
        changes: dict[str, str | None] = {"listeners": f"{STATIC},EXTRA://127.0.0.1:{new}"}
        assert alter(broker.bootstrap_servers, changes) is None
        talk.until_closed()
    until(lambda: told(f"127.0.0.1:{new}") == [("127.0.0.1", new)], seconds_max=20)
    assert not is_listening(old)


def test_a_port_passes_from_one_listener_to_another_in_one_change(broker: Broker) -> None:
    port = add(broker)
    changes = {
        "listeners": f"{STATIC},SIGNED://127.0.0.1:{port}",
        "listener.name.signed.sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    assert alter(broker.bootstrap_servers, changes) is None
    until(lambda: names(broker) == ["PLAINTEXT", "SIGNED"], seconds_max=20)
    until(lambda: is_listening(port), seconds_max=20)


def test_who_replaces_all_settings_and_names_no_listeners_removes_them(broker: Broker) -> None:
    port = add(broker)
    row = replace_all(broker, {"num.partitions": "2"})
    assert row.error_code == 0, row
    until(lambda: not is_listening(port), seconds_max=20)


def test_a_listener_of_the_file_stays_away_after_a_restart_until_it_is_wanted_again(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "listeners": f"{STATIC},EXTRA://127.0.0.1:{port}",
        MAP: PROTOCOLS,
        "listener.name.extra.connections.max.reauth.ms": "0",
    }
    with Broker(settings=settings, data_dir=tmp_path / "data") as broker:
        assert alter(broker.bootstrap_servers, {"listeners": STATIC}) is None
        until(lambda: not is_listening(port), seconds_max=20)
    with Broker(settings=settings, data_dir=tmp_path / "data") as broker:
        assert names(broker) == ["PLAINTEXT"]
        assert not is_listening(port)
        assert not told_by_name(broker, "EXTRA")
        assert alter(broker.bootstrap_servers, {"listeners": None}) is None
        until(lambda: told(f"127.0.0.1:{port}") == [("127.0.0.1", port)], seconds_max=20)


def test_an_added_listener_has_its_numbers() -> None:
    page = free_port()
    with Broker(settings={"listeners": STATIC, "barnabas.http.port": str(page)}) as broker:
        port = add(broker)
        with Talk(f"127.0.0.1:{port}"), urlopen(f"http://127.0.0.1:{page}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    assert 'kafka_server_socket_server_metrics_connection_count{listener="EXTRA"} 1' in text


# --- what they speak --------------------------------------------------------------------------------------------------


def test_a_listener_with_tls_is_added_with_its_keys(broker: Broker, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    store = authority.issue("/O=Test/CN=added").store
    with Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
    port = add(broker, "SECURE", **{"listener.name.secure.ssl.keystore.location": str(store)})
    security = {"security.protocol": "SSL", "ssl.ca.location": str(authority.certificate)}
    assert confluent(f"127.0.0.1:{port}", "t", security) == b"hello"


def test_a_listener_that_asks_for_sign_in_is_added_with_its_users(broker: Broker) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    users = f'{module} required user_alice="secret";'
    own = {
        "listener.name.signed.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.signed.plain.sasl.jaas.config": users,
    }
    with Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
    port = add(broker, "SIGNED", **own)
    security = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}
    assert confluent(f"127.0.0.1:{port}", "t", {**security, "sasl.password": "secret"}) == b"hello"
    with pytest.raises(Refused):
        confluent(f"127.0.0.1:{port}", "t", {**security, "sasl.password": "guessed"})
    shown = described(broker.bootstrap_servers)["listener.name.signed.plain.sasl.jaas.config"]
    assert shown.value is None
    assert shown.is_sensitive
    error = alter(broker.bootstrap_servers, {"listener.name.signed.sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    assert error is not None
    assert "listener SIGNED keeps sasl.enabled.mechanisms" in error.message


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"listeners": f"{STATIC},EXTRA://127.0.0.1:0", MAP: "PLAINTEXT:PLAINTEXT,EXTRA:HTTP"}, "not NAME:PROTOCOL"),
        ({"listeners": f"{STATIC},EXTRA://127.0.0.1:0"}, "what is spoken on EXTRA"),
        ({"listeners": f"{STATIC},PLAINTEXT://127.0.0.1:0"}, "PLAINTEXT is there twice"),
        ({"listeners": f"{STATIC},A://127.0.0.1:7,B://:7", MAP: "PLAINTEXT:PLAINTEXT,A:PLAINTEXT,B:PLAINTEXT"}, "port"),
        ({"listeners": "EXTRA://127.0.0.1:0", MAP: PROTOCOLS}, "PLAINTEXT is none of the broker's listeners"),
        ({"listeners": "PLAINTEXT://127.0.0.1:7"}, "does not move"),
        ({"listeners": "nonsense"}, "is not NAME://host:port"),
        ({"listeners": f"{STATIC},SECURE://127.0.0.1:0", MAP: PROTOCOLS}, "needs ssl.keystore.location"),
        ({"listeners": f"{STATIC},SIGNED://127.0.0.1:0", MAP: PROTOCOLS}, "name sasl.enabled.mechanisms"),
        ({"listeners": f"{STATIC},EXTRA://192.0.2.1:0", MAP: PROTOCOLS}, "cannot listen on EXTRA://192.0.2.1:0"),
        ({"listeners": f"{STATIC},EXTRA://no.such.host.test:0", MAP: PROTOCOLS}, "cannot listen on EXTRA://no.such"),
        ({"listeners": f"{STATIC},EXTRA://a..b:0", MAP: PROTOCOLS}, "cannot listen on EXTRA://a..b:0"),
        ({MAP: "PLAINTEXT:SASL_PLAINTEXT"}, "PLAINTEXT"),
        ({"advertised.listeners": "PLAINTEXT://a.test:1"}, "advertised.listeners cannot change while the broker runs"),
    ],
    ids=range(14),
)
def test_what_cannot_be_is_refused_with_a_sentence_and_changes_nothing(
    broker: Broker, changes: dict[str, str], reason: str
) -> None:
    before = broker.node.listeners
    error = alter(broker.bootstrap_servers, changes)
    assert error is not None
    assert error.error is errors.INVALID_REQUEST
    assert reason in error.message
    assert broker.node.listeners == before
    assert described(broker.bootstrap_servers)["listeners"].source is ConfigSource.STATIC_BROKER


def test_a_port_that_is_taken_refuses_the_change(broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        changes = {"listeners": f"{STATIC},EXTRA://127.0.0.1:{taken}", MAP: PROTOCOLS}
        error = alter(broker.bootstrap_servers, changes)
    assert error is not None
    assert f"cannot listen on EXTRA://127.0.0.1:{taken}: address already in use" in error.message
    assert names(broker) == ["PLAINTEXT"]


@pytest.mark.parametrize(("name", "reason"), [("", "name a broker"), ("7", "ask '7' itself")])
def test_listeners_are_each_brokers_own(broker: Broker, name: str, reason: str) -> None:
    request = IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name="listeners", value=STATIC)
    resource = request.AlterConfigsResource(resource_type=OWN.kind, resource_name=name, configs=[config])
    with Talk(broker.bootstrap_servers) as talk:
        (row,) = talk.ask(request(resources=[resource])).responses
    assert row.error_code == errors.INVALID_REQUEST.code
    assert reason in (row.error_message or "")


def test_who_only_asks_opens_nothing(broker: Broker) -> None:
    port = free_port()
    changes = {"listeners": f"{STATIC},EXTRA://127.0.0.1:{port}", MAP: PROTOCOLS}
    assert alter(broker.bootstrap_servers, changes, validate_only=True) is None
    assert names(broker) == ["PLAINTEXT"]
    assert not is_listening(port)


def test_a_broker_whose_added_port_is_taken_when_it_starts_serves_the_others(tmp_path: Path) -> None:
    with Broker(settings={"listeners": STATIC}, data_dir=tmp_path / "data") as broker:
        port = add(broker)
    with (
        socket.create_server(("127.0.0.1", port)),
        Broker(settings={"listeners": STATIC}, data_dir=tmp_path / "data") as broker,
    ):
        assert names(broker) == ["PLAINTEXT"]
        with Talk(broker.bootstrap_servers) as talk:
            assert len(talk.ask(MetadataRequest(topics=[])).brokers) == 1


# --- what is advertised -----------------------------------------------------------------------------------------------


def test_where_the_file_says_what_is_advertised_an_added_listener_tells_of_no_broker() -> None:
    """As in Kafka, where advertised.listeners is read at the start."""
    settings = {"listeners": STATIC, "advertised.listeners": "PLAINTEXT://a.test:1"}
    with Broker(settings=settings) as broker:
        with Talk(broker.bootstrap_servers) as talk:
            talk.create("t")
        port = free_port()
        changes = {"listeners": f"{STATIC},EXTRA://127.0.0.1:{port}", MAP: PROTOCOLS}
        assert replace_all(broker, changes).error_code == 0
        until(lambda: is_listening(port), seconds_max=20)
        with Talk(f"127.0.0.1:{port}") as talk:
            for version, error in ((5, errors.LEADER_NOT_AVAILABLE), (13, errors.LISTENER_NOT_FOUND)):
                answer = talk.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), version)
                assert answer.brokers == []
                assert answer.topics[0].partitions[0].error_code == error.code
