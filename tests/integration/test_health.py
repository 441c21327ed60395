"""What programs that watch a broker see: whether it is ready, and numbers that are true."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest
from talk import Talk, batch

from barnabas.broker.node.listeners import Listeners
from barnabas.broker.requests import dispatch
from barnabas.broker.requests.routes import ROUTES
from barnabas.http.server import HttpServer
from barnabas.testing import Broker
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest

LINE = re.compile(r'[a-z_][a-z0-9_]*(\{[a-z_]+="[^"\n]*"(,[a-z_]+="[^"\n]*")*\})? -?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?')
# Of the dashboards of Strimzi (Kafka's own names through the JMX exporter) and of kafka_exporter.
STRIMZI = (
    *(f"kafka_server_brokertopicmetrics_{name}_total" for name in (
        "messagesin", "bytesin", "bytesout", "totalproducerequests", "totalfetchrequests", "failedproducerequests",
        "failedfetchrequests", "replicationbytesin", "replicationbytesout",
    )),
    *(f"kafka_server_replicamanager_{name}" for name in (
        "leadercount", "partitioncount", "underreplicatedpartitions", "underminisrpartitioncount",
        "atminisrpartitioncount", "offlinereplicacount",
    )),
    *(f"kafka_controller_kafkacontroller_{name}" for name in (
        "activecontrollercount", "offlinepartitionscount", "preferredreplicaimbalancecount", "globaltopiccount",
        "globalpartitioncount", "activebrokercount", "fencedbrokercount",
    )),
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    *(f"kafka_cluster_partition_{name}" for name in (
        "replicascount", "insyncreplicascount", "underminisr", "atminisr", "underreplicated",
    )),
    *(f"kafka_log_log_{name}" for name in ("size", "numlogsegments", "logstartoffset", "logendoffset")),
    "kafka_log_logmanager_offlinelogdirectorycount",
    *(f"kafka_network_requestmetrics_{name}timems{suffix}" for suffix in ("", "_count", "_sum") for name in (
        "total", "requestqueue", "local", "remote", "responsequeue", "responsesend",
    )),
    "kafka_network_requestmetrics_requests_total",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_server_socket_server_metrics_connection_creation_total",
    *(f"kafka_server_raftmetrics_{name}" for name in (
        "current_leader", "current_epoch", "current_state", "high_watermark", "log_end_offset", "commit_latency_avg",
        "append_records_rate",
    )),
    "kafka_server_kafkaserver_brokerstate",
    "process_cpu_seconds_total",
)  # fmt: skip
KAFKA_EXPORTER = (
    "kafka_brokers",
    "kafka_broker_info",
    "kafka_topic_partitions",
    *(f"kafka_topic_partition_{name}" for name in (
        "current_offset", "oldest_offset", "in_sync_replica", "leader", "leader_is_preferred", "replicas",
        "under_replicated_partition",
    )),
)  # fmt: skip
OURS = (
    "barnabas_loop_stalls_total",
    "barnabas_loop_stall_seconds_max",
    "barnabas_loop_lag_seconds",
    "barnabas_disk_free_bytes",
    "barnabas_disk_size_bytes",
    "barnabas_log_directory_bytes",
    "barnabas_task_failures_total",
    "barnabas_log_faults_total",
)
NAMES = (*STRIMZI, *KAFKA_EXPORTER, *OURS)


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


def number(text: str, sample: str) -> float:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{sample} ")]
    return float(line.rpartition(" ")[2])


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


def test_what_goes_through_a_topic_is_counted_and_totals_never_fall(broker: Broker, port: int, name: str) -> None:
    prefix = "kafka_server_brokertopicmetrics_"
    records = batch(b"x" * 100, b"y" * 100)
    before = page(port, "/metrics")
    with Talk(broker.bootstrap_servers) as talk:
        talk.create(name)
        for _ in range(3):
            assert talk.produce(name, records).error_code == 0
        assert talk.produce(name, b"not a batch").error_code != 0
        talk.fetch(name, 0)
        text = page(port, "/metrics")
        for field, expected in (
            ("messagesin", 6),
            ("bytesin", 3 * len(records)),
            ("bytesout", 3 * len(records)),
            ("totalproducerequests", 4),
            ("failedproducerequests", 1),
            ("totalfetchrequests", 1),
            ("failedfetchrequests", 0),
        ):
            assert value(text, f'{prefix}{field}_total{{topic="{name}"}}') == expected, field
            total = f"{prefix}{field}_total"
            assert value(text, total) >= value(before, total) + expected
        talk.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)]))
    after = page(port, "/metrics")
    assert name not in after
    assert value(after, f"{prefix}bytesin_total") >= value(text, f"{prefix}bytesin_total")


def test_the_time_of_requests_is_told_by_part(broker: Broker, port: int, name: str) -> None:
    with Talk(broker.bootstrap_servers) as talk:
        talk.create(name)
        assert talk.produce(name, batch(b"x")).error_code == 0
        talk.fetch(name, 1, max_wait_ms=30, min_bytes=1)
        talk.ask(ListGroupsRequest())
    text = page(port, "/metrics")
    prefix = "kafka_network_requestmetrics_"
    for request in ("Produce", "FetchConsumer", "CreateTopics", "ListGroups"):
        assert value(text, f'{prefix}requests_total{{request="{request}"}}') >= 1, request
        assert value(text, f'{prefix}totaltimems_count{{request="{request}"}}') >= 1, request
        parts = [
            number(text, f'{prefix}{part}timems_sum{{request="{request}"}}')
            for part in ("requestqueue", "local", "remote", "responsequeue", "responsesend")
        ]
        assert sum(parts) == pytest.approx(number(text, f'{prefix}totaltimems_sum{{request="{request}"}}'), abs=0.01)
    assert number(text, f'{prefix}remotetimems{{request="FetchConsumer",quantile="0.99"}}') >= 25
    assert number(text, f'{prefix}localtimems{{request="Produce",quantile="0.5"}}') > 0


def test_a_loop_that_is_held_up_says_so(broker: Broker, port: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="barnabas.loop")
    before = value(page(port, "/metrics"), "barnabas_loop_stalls_total")

    async def hold_up() -> None:
        time.sleep(0.2)  # noqa: ASYNC251

    broker.run(hold_up())
    with Talk(broker.bootstrap_servers) as talk:
        while value(text := page(port, "/metrics"), "barnabas_loop_stalls_total") == before:
            talk.ask(ListGroupsRequest())
    assert number(text, "barnabas_loop_stall_seconds_max") >= 0.05
    assert "the loop was held up" in caplog.text


def test_a_slow_request_is_logged_with_the_parts_of_its_time(
    name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(request: object, message: object) -> object:
        time.sleep(0.3)
        return original(request, message)

    original = ROUTES[ApiKey.LIST_GROUPS].handle
    monkeypatch.setitem(dispatch.ROUTES, ApiKey.LIST_GROUPS, replace(ROUTES[ApiKey.LIST_GROUPS], handle=slow))
    settings = {"barnabas.slow.request.ms": "250"}
    with Broker(settings=settings) as running, Talk(running.bootstrap_servers, client_id="evil\nclient") as talk:
        talk.create(name)
        talk.fetch(name, 0, max_wait_ms=400, min_bytes=1)
        talk.ask(ListGroupsRequest())
    lines = [record.getMessage() for record in caplog.records if record.name == "barnabas.slow"]
    assert not any("Fetch" in line for line in lines), "waiting for records is not slow"
    (line,) = [line for line in lines if "ListGroups" in line]
    assert line.startswith('slow request request=ListGroups client="evil\\nclient" queue_ms=')
    assert int(line.partition("local_ms=")[2].split()[0]) >= 299


def test_the_port_opens_when_the_broker_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks the port and finds it open finds a broker that serves clients."""
    start = HttpServer.start
    served: list[bool] = []

    async def watched(self: HttpServer, host: str, port: int) -> None:
        _, writer = await asyncio.open_connection(*addresses[0]["PLAINTEXT"])
        writer.close()
        served.append(True)
        await start(self, host, port)

    addresses: list[dict[str, tuple[str, int]]] = []
    bind = Listeners.bind

    async def bound(self: Listeners) -> None:
        await bind(self)
        addresses.append(self.addresses)

    monkeypatch.setattr(HttpServer, "start", watched)
    monkeypatch.setattr(Listeners, "bind", bound)
    with Broker(settings={"barnabas.http.port": str(free_port())}):
        assert served == [True]
