"""Settings of a broker, each shown by what it changes; ``tests/settings.toml`` names the tests of the others."""

from __future__ import annotations

import socket
import struct
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from configured import running
from talk import Talk, address_of, batch, creatable

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.model import errors
from barnabas.model.settings import InvalidSetting
from barnabas.testing import Broker
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

TOPIC, GROUP = 2, 32
FRAME_BYTES = 2000
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PLAIN_LISTENER = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{LOGIN_MODULE} required user_alice=secret;",
}


def is_cut_off(servers: str, data: bytes) -> bool:
    """Whether the broker hangs up on this."""
    with socket.create_connection(address_of(servers), timeout=10) as raw:
        raw.sendall(data)
        raw.settimeout(5)
        try:
            return raw.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


# --- connections ------------------------------------------------------------------------------------------------------


def test_max_connections_per_ip() -> None:
    with running(max_connections_per_ip="1") as (broker, talk):
        assert is_cut_off(broker.bootstrap_servers, b"")
        assert talk.is_open


def test_max_connections_per_ip_overrides() -> None:
    with running(max_connections_per_ip="1", max_connections_per_ip_overrides="10.0.0.1:9,127.0.0.1:2") as (broker, _):
        with Talk(broker.bootstrap_servers) as second:
            assert is_cut_off(broker.bootstrap_servers, b"")
            assert second.is_open
        with pytest.raises(InvalidSetting, match="address:count"):
            BrokerSettings.of({"max.connections.per.ip.overrides": "127.0.0.1"})


def test_socket_request_max_bytes() -> None:
    with running(socket_request_max_bytes="1000") as (broker, talk):
        assert is_cut_off(broker.bootstrap_servers, struct.pack(">i", FRAME_BYTES))
        assert talk.is_open


def test_sasl_server_max_receive_size() -> None:
    with Broker(settings={**PLAIN_LISTENER, "sasl.server.max.receive.size": "1000"}) as broker:
        assert is_cut_off(broker.bootstrap_servers, struct.pack(">i", FRAME_BYTES))


def test_connection_failed_authentication_delay_ms() -> None:
    with (
        Broker(settings={**PLAIN_LISTENER, "connection.failed.authentication.delay.ms": "400"}) as broker,
        Talk(broker.bootstrap_servers) as talk,
    ):
        talk.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        started = time.monotonic()
        answer = talk.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
        assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED.code
        assert time.monotonic() - started >= 0.39  # timers of the loop may be early by a tick


@pytest.mark.parametrize("name", ["ssl.keystore.type", "ssl.truststore.type"])
def test_keys_have_one_form(name: str) -> None:
    assert BrokerSettings.of({name: "PEM"})
    with pytest.raises(InvalidSetting, match="PEM"):
        BrokerSettings.of({name: "JKS"})


def test_ssl_principal_mapping_rules() -> None:
    settings = BrokerSettings.of({"ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/U,DEFAULT"})
    assert settings.security.listeners["PLAINTEXT"].mapping_rules.name("CN=ann,OU=x") == "ANN"


def test_barnabas_http_host() -> None:
    with socket.create_server(("127.0.0.2", 0)) as held:
        port = held.getsockname()[1]
    with running(barnabas_http_host="127.0.0.2", barnabas_http_port=str(port)):
        with urllib.request.urlopen(f"http://127.0.0.2:{port}/livez", timeout=5) as answer:
            assert answer.status == 200
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)


# --- topics -----------------------------------------------------------------------------------------------------------


def test_default_replication_factor() -> None:
    with running(default_replication_factor="2") as (_, talk):
        wanted = creatable("t", 1)
        wanted.replication_factor = -1
        answer = talk.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=5000))
        assert answer.topics[0].error_code == errors.INVALID_REPLICATION_FACTOR.code


def test_max_request_partition_size_limit() -> None:
    with running(max_request_partition_size_limit="2") as (_, talk):
        talk.create("t", 5)
        wanted = [DescribeTopicPartitionsRequest.TopicRequest(name="t")]
        answer = talk.ask(DescribeTopicPartitionsRequest(topics=wanted))
        assert [len(topic.partitions) for topic in answer.topics] == [2]
        assert answer.next_cursor.partition_index == 2


def test_log_retention_check_interval_ms() -> None:
    with running(log_retention_check_interval_ms="7200000") as (broker, talk):
        talk.create("t", retention_ms="1000")
        now_ms = broker.node.world.clock.wall_ms()
        talk.produce("t", bytes(batch(b"x", timestamp=now_ms)))
        broker.clock.advance("1h")
        assert talk.fetch("t").log_start_offset == 0
        broker.clock.advance("2h")
        assert talk.fetch("t", 1).log_start_offset == 1


def test_replica_high_watermark_checkpoint_interval_ms(tmp_path: Path) -> None:
    with running(tmp_path, replica_high_watermark_checkpoint_interval_ms="3600000") as (broker, talk):
        talk.create("t")
        talk.produce("t", bytes(batch(b"x")))
        file = tmp_path / "replication-offset-checkpoint"
        broker.clock.advance("30m")
        assert not file.exists() or "t 0 1" not in file.read_text()
        broker.clock.advance("1h")
        assert "t 0 1" in file.read_text()


def test_producer_id_expiration_check_interval_ms() -> None:
    settings = {"producer_id_expiration_ms": "1000", "producer_id_expiration_check_interval_ms": "7200000"}
    with running(**settings) as (broker, talk):
        talk.create("t")
        producer_id = talk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)).producer_id
        now_ms = broker.node.world.clock.wall_ms()
        records = batch(b"x", timestamp=now_ms, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        assert talk.produce("t", bytes(records)).error_code == 0
        wanted = [DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])]

        def producers() -> list[Any]:
            found: list[Any] = (
                talk.ask(DescribeProducersRequest(topics=wanted)).topics[0].partitions[0].active_producers
            )
            return found

        broker.clock.advance("1h")
        assert len(producers()) == 1
        broker.clock.advance("2h")
        assert producers() == []


# --- metadata ---------------------------------------------------------------------------------------------------------


def snapshots(data_dir: Path) -> list[Path]:
    """All but the one that every cluster begins with."""
    return [path for path in (data_dir / "__cluster_metadata-0").glob("*.checkpoint") if int(path.name[:20])]


def test_metadata_log_max_record_bytes_between_snapshots(tmp_path: Path) -> None:
    settings = {
        "metadata_log_max_record_bytes_between_snapshots": "2000",
        "metadata_log_max_snapshot_interval_ms": "0",
    }
    with running(tmp_path, **settings) as (broker, talk):
        for number in range(40):
            talk.create(f"t{number}")
        broker.clock.advance(1)
        assert snapshots(tmp_path)
    with running(tmp_path / "other", metadata_log_max_snapshot_interval_ms="0") as (broker, talk):
        for number in range(40):
            talk.create(f"t{number}")
        broker.clock.advance("2h")
        assert not snapshots(tmp_path / "other")


def test_metadata_log_max_snapshot_interval_ms(tmp_path: Path) -> None:
    with running(tmp_path, metadata_log_max_snapshot_interval_ms="60000") as (broker, talk):
        talk.create("t")
        assert not snapshots(tmp_path)
        broker.clock.advance("2m")
        talk.create("u")
        broker.clock.advance("2m")
        assert snapshots(tmp_path)


def test_message_timestamp_after_max_ms(talk: Talk, name: str, shared_broker: Broker) -> None:
    ahead_ms = shared_broker.node.world.clock.wall_ms() + 7_200_000
    talk.create(name)
    assert talk.produce(name, bytes(batch(b"x", timestamp=ahead_ms))).error_code == errors.INVALID_TIMESTAMP.code
    talk.create(f"{name}-wide", message_timestamp_after_max_ms="10800000")
    assert talk.produce(f"{name}-wide", bytes(batch(b"x", timestamp=ahead_ms))).error_code == 0


def test_segment_jitter_ms(tmp_path: Path) -> None:
    """Without it, 60 seconds of records are six segments; with it, some segments end sooner."""
    with running(tmp_path) as (broker, talk):
        begin_ms = broker.node.world.clock.wall_ms() - 100_000
        for name, jitter_ms in (("even", "0"), ("jittered", "9000")):
            talk.create(name, segment_ms="10000", segment_jitter_ms=jitter_ms)
            for second in range(60):
                talk.produce(name, bytes(batch(b"x", timestamp=begin_ms + second * 1000)))
        even, jittered = (len(list((tmp_path / f"{name}-0").glob("*.log"))) for name in ("even", "jittered"))
        assert even == 6
        assert jittered > even


def test_advertised_listeners_and_broker_rack() -> None:
    """advertised.listeners, broker.rack"""
    settings = {"advertised_listeners": "PLAINTEXT://broker.example:19092", "broker_rack": "north"}
    with running(**settings) as (_, talk):
        (broker,) = talk.ask(MetadataRequest(topics=[])).brokers
        assert (broker.host, broker.port, broker.rack) == ("broker.example", 19092, "north")
    with running() as (running_broker, talk):
        (broker,) = talk.ask(MetadataRequest(topics=[])).brokers
        assert ((broker.host, broker.port), broker.rack) == (address_of(running_broker.bootstrap_servers), None)


def test_num_partitions() -> None:
    with running(num_partitions="5") as (_, talk):
        asked = [MetadataRequest.MetadataRequestTopic(name="made-on-demand")]
        talk.ask(MetadataRequest(topics=asked))
        assert len(talk.ask(MetadataRequest(topics=asked)).topics[0].partitions) == 5
