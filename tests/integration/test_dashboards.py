"""Dashboards find what they ask for: ours, and the queries of those that people bring along."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from talk import Talk, batch

from barnabas.cli.main import main
from barnabas.testing import Broker
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest

NAME = re.compile(r"\b(?:kafka|barnabas|process)_[a-z0-9_]+")
ATTEMPTS = 200
# Queries of public dashboards: Strimzi's strimzi-kafka.json and strimzi-kraft.json, and kafka_exporter's (Grafana
# 7589 and 11285), as they stand there, with their variables filled in.
PUBLIC = """
sum(kafka_server_replicamanager_leadercount{namespace="n"})
count(kafka_server_replicamanager_leadercount{namespace="n"})
sum(kafka_controller_kafkacontroller_activecontrollercount{namespace="n"}) > 0
sum(rate(kafka_controller_controllerstats_uncleanleaderelections_total{namespace="n"}[5m]))
sum(kafka_server_replicamanager_partitioncount{namespace="n"})
sum(kafka_server_replicamanager_underreplicatedpartitions{namespace="n"})
sum(kafka_cluster_partition_atminisr{namespace="n"})
sum(kafka_cluster_partition_underminisr{namespace="n"})
sum(kafka_controller_kafkacontroller_offlinepartitionscount{namespace="n"})
sum(irate(kafka_server_brokertopicmetrics_messagesin_total{topic=~"t",topic!=""}[5m]))
sum(irate(kafka_server_brokertopicmetrics_bytesin_total{topic=~"t",topic!=""}[5m])) by (topic)
sum(irate(kafka_server_brokertopicmetrics_bytesout_total{topic=~"t",topic!=""}[5m])) by (topic)
sum(irate(kafka_server_brokertopicmetrics_totalproducerequests_total{topic=~"t",topic!=""}[5m]))
sum(irate(kafka_server_brokertopicmetrics_totalfetchrequests_total{topic=~"t",topic!=""}[5m]))
sum(irate(kafka_server_brokertopicmetrics_failedproducerequests_total{topic=~"t",topic!=""}[5m]))
sum(irate(kafka_server_brokertopicmetrics_failedfetchrequests_total{topic=~"t",topic!=""}[5m]))
sum(kafka_server_socket_server_metrics_connection_count{namespace="n"}) by (listener)
avg(kafka_network_socketserver_networkprocessoravgidle_percent{namespace="n"}) * 100
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{namespace="n"}
sum(kafka_log_log_size{topic=~"t",partition=~"p"}) by (topic, partition)
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"}
kafka_server_raftmetrics_current_leader
kafka_server_raftmetrics_current_epoch
kafka_server_raftmetrics_current_state
kafka_server_raftmetrics_high_watermark
kafka_server_raftmetrics_log_end_offset
kafka_server_raftmetrics_commit_latency_avg
kafka_server_raftmetrics_append_records_rate
kafka_brokers
sum(rate(kafka_topic_partition_current_offset{instance="i", topic=~"t"}[1m])) by (topic)
sum(kafka_consumergroup_lag{instance="i",topic=~"t"}) by (consumergroup, topic)
sum(rate(kafka_consumergroup_current_offset{topic=~"t"}[1m])) by (consumergroup, topic)
sum by(topic) (kafka_topic_partitions{instance="i",topic=~"t"})
sum(kafka_topic_partition_under_replicated_partition{instance="i",topic=~"t"}) by (topic)
sum(delta(kafka_topic_partition_current_offset{topic=~"t"}[5m])/5) by (topic)
kafka_topic_partition_current_offset - kafka_topic_partition_oldest_offset
kafka_topic_partition_in_sync_replica
kafka_topic_partition_replicas
kafka_topic_partition_leader
kafka_topic_partition_leader_is_preferred
kafka_consumergroup_current_offset_sum
kafka_consumergroup_lag_sum
kafka_consumergroup_members
sum(kafka_coordinator_group_groupmetadatamanager_numgroups)
kafka_coordinator_group_groupmetadatamanager_numgroupsstable
kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance
kafka_server_replicamanager_partitionswithlatetransactionscount
sum(kafka_server_replicamanager_isrshrinks_total) by (instance)
sum(kafka_server_replicamanager_isrexpands_total) by (instance)
kafka_server_replicafetchermanager_maxlag{clientid="Replica"}
kafka_log_logmanager_offlinelogdirectorycount
"""
CONFLUENT = """
rate(kafka_server_brokertopicmetrics_bytesinpersec{topic=""}[1m])
rate(kafka_server_brokertopicmetrics_bytesoutpersec{topic=""}[1m])
rate(kafka_server_brokertopicmetrics_messagesinpersec{topic=""}[1m])
kafka_server_kafkaserver_brokerstate
kafka_log_log_logendoffset
kafka_coordinator_group_groupmetadatamanager_numgroups
kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance
rate(kafka_server_replicamanager_isrshrinkspersec[1m])
kafka_server_transaction_coordinator_metrics_partition_load_time_max
kafka_server_transaction_coordinator_metrics_partition_load_time_avg
kafka_server_group_coordinator_metrics_partition_load_time_max
kafka_server_group_coordinator_metrics_partition_load_time_avg
sum(kafka_server_group_coordinator_metrics_num_partitions) by (state)
kafka_server_group_coordinator_metrics_offset_commit_rate
rate(kafka_server_group_coordinator_metrics_offset_commit_count[5m])
kafka_server_group_coordinator_metrics_offset_expiration_count
kafka_server_group_coordinator_metrics_offset_deletion_count
rate(kafka_server_group_coordinator_metrics_group_completed_rebalance_count[5m])
kafka_server_group_coordinator_metrics_group_completed_rebalance_rate
rate(kafka_server_group_coordinator_metrics_consumer_group_rebalance_count[5m])
kafka_server_group_coordinator_metrics_consumer_group_rebalance_rate
"""


@pytest.fixture(scope="module")
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def shown(port: int) -> Iterator[str]:
    """The page of a broker at work."""
    with Broker(settings={"barnabas.http.port": str(port)}) as running, Talk(running.bootstrap_servers) as talk:
        talk.create("shown")
        assert talk.produce("shown", batch(b"x")).error_code == 0
        talk.fetch("shown", 0)
        commit = OffsetCommitRequest
        part = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        for _ in range(ATTEMPTS):
            talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["readers"]))
            request = commit(
                group_id="readers",
                generation_id_or_member_epoch=-1,
                topics=[commit.OffsetCommitRequestTopic(name="shown", partitions=[part])],
            )
            code = talk.ask(request, 8).topics[0].partitions[0].error_code
            if not code:
                break
        assert code == 0
        yield page(port, "/metrics")


def page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def names(text: str) -> set[str]:
    """With at least one sample, or at least declared."""
    declared = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    return declared | {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("barnabas.observe").joinpath("grafana.json").read_text())
    return found


def expressions() -> list[str]:
    found = dashboard()
    asked = [target["expr"] for panel in found["panels"] for target in panel.get("targets", ())]
    return asked + [each["query"] for each in found["templating"]["list"] if each["type"] == "query"]


def test_every_name_of_our_dashboard_is_shown(shown: str) -> None:
    asked = {name for expression in expressions() for name in NAME.findall(expression)}
    assert len(asked) > 40
    assert asked <= names(shown)


def test_every_name_that_public_dashboards_ask_for_is_shown(shown: str) -> None:
    asked = set(NAME.findall(PUBLIC))
    assert len(asked) > 35
    assert asked <= names(shown)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("kafka_server_brokertopicmetrics_bytesin_total", {"topic"}),
        ("kafka_network_requestmetrics_totaltimems", {"request", "quantile"}),
        ("kafka_log_log_size", {"topic", "partition"}),
        ("kafka_topic_partition_current_offset", {"topic", "partition"}),
        ("kafka_consumergroup_lag", {"consumergroup", "topic", "partition"}),
        ("kafka_cluster_partition_underminisr", {"topic", "partition"}),
        ("kafka_server_socket_server_metrics_connection_count", {"listener"}),
        ("kafka_server_raftmetrics_current_state", {"current_state"}),
        ("kafka_broker_info", {"id", "address"}),
    ],
)
def test_labels_are_those_of_the_dashboards(shown: str, name: str, labels: set[str]) -> None:
    found = [line for line in shown.splitlines() if line.startswith(f"{name}{{")]
    assert found
    assert all(set(re.findall(r'([a-z_]+)="', line)) == labels for line in found)


def test_groups_are_counted_by_state(shown: str) -> None:
    prefix = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    assert {f"{prefix} 1", f"{prefix}empty 1", f"{prefix}stable 0"} <= set(shown.splitlines())


def test_commits_and_rebalances_are_counted(shown: str) -> None:
    prefix = "kafka_server_group_coordinator_metrics_"
    assert f"{prefix}offset_commit_count 1\n" in shown
    assert f"{prefix}group_completed_rebalance_count 0\n" in shown
    (rate,) = re.findall(rf"^{prefix}offset_commit_rate (\S+)$", shown, re.MULTILINE)
    assert 0 < float(rate) <= 1 / 30


def test_the_coordinators_that_were_just_loaded_tell_how_long_it_took(shown: str) -> None:
    prefix = "kafka_server_group_coordinator_metrics_"
    numbers = dict(line.rsplit(" ", 1) for line in shown.splitlines() if line.startswith(prefix))
    longest, mean = (float(numbers[f"{prefix}partition_load_time_{what}"]) for what in ("max", "avg"))
    assert 0 < mean <= longest
    assert int(numbers[f'{prefix}num_partitions{{state="active"}}']) >= 1
    assert numbers[f'{prefix}num_partitions{{state="failed"}}'] == "0"
    transactions = "kafka_server_transaction_coordinator_metrics_partition_load_time_max"
    assert f"# TYPE {transactions} gauge" in shown, "it is there, and has no number while nothing was loaded"
    assert f"\n{transactions} " not in shown


def test_confluents_names_are_shown_to_those_who_ask_so(shown: str, port: int) -> None:
    other = page(port, "/metrics?style=confluent")
    assert set(NAME.findall(CONFLUENT)) <= names(other)
    assert len(names(other)) == len(names(shown)), "the same numbers"


def test_every_name_of_our_alerts_is_shown(shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "alerts"]) == 0
    asked = set(NAME.findall(capsys.readouterr().out))
    assert len(asked) >= 9
    assert asked <= names(shown)


def test_what_is_generated_is_what_is_served(port: int, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "grafana"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(page(port, "/grafana.json"))
    assert main(["generate", "prometheus", "--target", f"127.0.0.1:{port}"]) == 0
    assert f'targets: ["127.0.0.1:{port}"]' in capsys.readouterr().out
    assert page(port, "/startupz") == "ok\n"


def test_the_dashboard_is_sound_and_served(shown: str, port: int) -> None:
    served = json.loads(page(port, "/grafana.json"))
    assert served == dashboard()
    ids = [panel["id"] for panel in served["panels"]]
    assert len(ids) == len(set(ids))
    assert all(panel["type"] in ("row", "stat", "timeseries") for panel in served["panels"])
    for expression in expressions():
        assert expression.count("(") == expression.count(")")
        assert expression.count("{") == expression.count("}")
