"""What programs that watch a broker see: whether it is ready, and numbers that are true."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from talk import Talk, batch

from barnabas.testing import Broker

LINE = re.compile(r'[a-z_][a-z0-9_]*(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? -?[0-9]+(\.[0-9]+)?')
# Of the dashboards of Strimzi and of kafka_exporter.
NAMES = (
    "kafka_brokers",
    "kafka_server_kafkaserver_brokerstate",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_server_raftmetrics_current_leader",
    "kafka_server_raftmetrics_current_epoch",
    "kafka_server_raftmetrics_high_watermark",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_topic_partitions",
    "kafka_topic_partition_leader",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_under_replicated_partition",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_oldest_offset",
    "kafka_log_log_size",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_logendoffset",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(port: int) -> Iterator[Broker]:
    with Broker(settings={"barnabas.http.port": str(port)}) as running:
        yield running


def page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def value(text: str, sample: str) -> int:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{sample} ")]
    return int(line.rpartition(" ")[2])


def test_a_running_broker_is_live_and_ready(broker: Broker, port: int) -> None:
    assert page(port, "/livez") == "ok\n"
    assert page(port, "/readyz") == "ok\n"


def test_numbers_are_those_of_the_broker(broker: Broker, port: int, name: str) -> None:
    with Talk(broker.bootstrap_servers) as talk:
        talk.create(name, partitions=2)
        for _ in range(3):
            assert talk.produce(name, batch(b"x", b"y")).error_code == 0
        text = page(port, "/metrics")
        assert value(text, "kafka_server_socket_server_metrics_connection_count" + '{listener="PLAINTEXT"}') >= 1
    assert value(text, f'kafka_topic_partitions{{topic="{name}"}}') == 2
    assert value(text, f'kafka_topic_partition_current_offset{{topic="{name}",partition="0"}}') == 6
    assert value(text, f'kafka_log_log_logendoffset{{topic="{name}",partition="0"}}') == 6
    assert value(text, f'kafka_log_log_size{{topic="{name}",partition="0"}}') > 100
    assert value(text, f'kafka_topic_partition_leader{{topic="{name}",partition="1"}}') == 1
    assert value(text, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert value(text, "kafka_server_replicamanager_leadercount") >= 2
    assert value(text, "kafka_controller_kafkacontroller_offlinepartitionscount") == 0


def test_the_names_of_public_dashboards_are_there_in_the_form_of_prometheus(
    broker: Broker, port: int, name: str
) -> None:
    with Talk(broker.bootstrap_servers) as talk:
        talk.create(name)
    text = page(port, "/metrics")
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or LINE.fullmatch(line), line
    found = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    assert set(NAMES) <= found
    assert text.count("# TYPE kafka_brokers ") == 1


def test_a_broker_that_has_failed_is_not_ready() -> None:
    port = free_port()
    with Broker(settings={"barnabas.http.port": str(port)}) as running:
        running.node.failed.set()
        with pytest.raises(urllib.error.HTTPError, match="503"):
            page(port, "/readyz")
        assert page(port, "/livez") == "ok\n"


def test_without_a_port_nobody_listens(shared_broker: Broker) -> None:
    assert shared_broker.node.settings.barnabas_http_port == 0
