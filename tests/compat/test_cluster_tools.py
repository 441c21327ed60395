"""Kafka's own tools run a cluster of ours: its quorum, its features, its topics, their leaders and where they lie."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kafka_tools import run_tool

from barnabas.testing.cluster import Cluster

pytestmark = pytest.mark.java

TOPIC = "moved"
ATTEMPTS_MAX = 15


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(
        tmp_path_factory.mktemp("cluster"), settings={"controller.quorum.auto.join.enable": "true"}
    ) as cluster:
        yield cluster


def controllers(cluster: Cluster) -> str:
    return ",".join(f"{each.host}:{each.controller_port}" for each in cluster.addresses.values())


def tool(cluster: Cluster, name: str, *arguments: str, via: str = "server") -> str:
    servers = cluster.bootstrap_servers if via == "server" else controllers(cluster)
    code, text = run_tool(f"org.apache.kafka.tools.{name}", f"--bootstrap-{via}", servers, *arguments)
    assert code == 0, text
    return text


def until(look: Callable[[], str], wanted: str) -> str:
    """Tools are slow enough to be asked again without a pause."""
    for _ in range(ATTEMPTS_MAX):
        text = look()
        if re.search(wanted, text):
            return text
    raise AssertionError(f"{wanted!r} is not in {text}")


def quorum(cluster: Cluster, *arguments: str, via: str = "server") -> str:
    return tool(cluster, "MetadataQuorumCommand", *arguments, via=via)


@pytest.mark.parametrize("via", ["server", "controller"])
def test_the_quorum_is_described(cluster: Cluster, via: str) -> None:
    status = until(lambda: quorum(cluster, "describe", "--status", via=via), r'"id": 3, "directoryId"')
    assert re.search(r"LeaderId:\s+[123]\n", status)
    assert re.search(r"CurrentObservers:\s+\[\]", status)
    rows = quorum(cluster, "describe", "--replication", via=via)
    assert rows.count("Follower") == 2
    assert rows.count("Leader") == 1


def test_a_controller_is_removed_and_comes_back(cluster: Cluster) -> None:
    status = until(lambda: quorum(cluster, "describe", "--status"), r'"id": 3, "directoryId"')
    leader = int(re.search(r"LeaderId:\s+(\d)", status)[1])  # type: ignore[index]
    gone = next(number for number in (1, 2, 3) if number != leader)
    directory = re.search(rf'"id": {gone}, "directoryId": "([^"]+)"', status)[1]  # type: ignore[index]
    removal = ("remove-controller", "--controller-id", str(gone), "--controller-directory-id", directory)
    assert f"KRaft controller {gone} with directory id {directory}" in quorum(cluster, *removal)
    until(lambda: quorum(cluster, "describe", "--status"), rf'"id": {gone}, "directoryId"')  # it joins by itself


@pytest.mark.parametrize("via", ["server", "controller"])
def test_features_are_described(cluster: Cluster, via: str) -> None:
    text = tool(cluster, "FeatureCommand", "describe", via=via)
    assert re.search(r"kraft.version\s.*FinalizedVersionLevel: 1\s", text)
    assert re.search(r"metadata.version\s.*FinalizedVersionLevel: 4\.3", text)


def test_a_feature_goes_down_and_up_again(cluster: Cluster) -> None:
    change = ("--feature", "group.version=0")
    assert "was downgraded to 0" in tool(cluster, "FeatureCommand", "downgrade", *change)
    change = ("--feature", "group.version=1")
    assert "was upgraded to 1" in tool(cluster, "FeatureCommand", "upgrade", *change)


def test_partitions_are_reassigned_and_get_their_preferred_leader_back(cluster: Cluster, tmp_path: Path) -> None:
    tool(cluster, "TopicCommand", "--create", "--topic", TOPIC, "--replica-assignment", "1:2,2:3")
    plan = tmp_path / "plan.json"
    partitions = [
        {"topic": TOPIC, "partition": 0, "replicas": [3, 1]},
        {"topic": TOPIC, "partition": 1, "replicas": [1, 2, 3]},
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    command = "reassign.ReassignPartitionsCommand"
    done = tool(cluster, command, "--reassignment-json-file", str(plan), "--execute", "--throttle", "10000000")
    assert "Successfully started partition reassignments" in done
    check = ("--reassignment-json-file", str(plan), "--verify")
    text = until(lambda: tool(cluster, command, *check), r"moved-1 is completed(.|\n)*removing|Clearing")
    assert text.count("is completed") == 2
    assert "No partition reassignments found" in tool(cluster, command, "--list")
    tool(cluster, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
    described = until(
        lambda: tool(cluster, "TopicCommand", "--describe", "--topic", TOPIC),
        r"Partition: 0\s+Leader: 3\s+Replicas: 3,1\s(.|\n)*Partition: 1\s+Leader: 1\s+Replicas: 1,2,3\s",
    )
    assert re.search(r"Partition: 1\s.*Isr: [123],[123],[123]", described)


def configs(cluster: Cluster, *arguments: str) -> str:
    code, text = run_tool("kafka.admin.ConfigCommand", "--bootstrap-server", cluster.bootstrap_servers, *arguments)
    assert code == 0, text
    return text


def test_settings_of_topics_of_one_broker_and_of_all_are_changed(cluster: Cluster) -> None:
    tool(cluster, "TopicCommand", "--create", "--topic", "tuned", "--partitions", "3", "--replication-factor", "3")
    topic = ("--entity-type", "topics", "--entity-name", "tuned")
    configs(cluster, "--alter", *topic, "--add-config", "min.insync.replicas=1,retention.ms=98765432")
    until(lambda: configs(cluster, "--describe", *topic), r"min\.insync\.replicas=1\s(.|\n)*retention\.ms=98765432\s")
    configs(cluster, "--alter", *topic, "--delete-config", "retention.ms")
    assert "98765432" not in configs(cluster, "--describe", *topic)

    everybody = ("--entity-type", "brokers", "--entity-default")
    configs(cluster, "--alter", *everybody, "--add-config", "log.retention.ms=12345678")
    one = ("--entity-type", "brokers", "--entity-name", "2")
    configs(cluster, "--alter", *one, "--add-config", "log.retention.ms=23456789")
    until(lambda: configs(cluster, "--describe", *one), r"log\.retention\.ms=23456789 .*DYNAMIC_BROKER_CONFIG")
    for other in ("1", "3"):
        place = ("--entity-type", "brokers", "--entity-name", other, "--all")
        text = until(lambda place=place: configs(cluster, "--describe", *place), r"log\.retention\.ms=12345678")  # type: ignore[misc]
        assert "23456789" not in text
    configs(cluster, "--alter", *one, "--delete-config", "log.retention.ms")
    configs(cluster, "--alter", *everybody, "--delete-config", "log.retention.ms")
    assert "12345678" not in configs(cluster, "--describe", *everybody)


def test_the_verifiable_producer_and_consumer_outlive_a_broker(cluster: Cluster, tmp_path: Path) -> None:
    tool(cluster, "TopicCommand", "--create", "--topic", "verified", "--partitions", "3", "--replication-factor", "3")
    count = 1000
    settings = tmp_path / "producer.properties"
    settings.write_text("retries=2147483647\nenable.idempotence=true\n")  # this tool does not try twice by itself
    words = ("--topic", "verified", "--max-messages", str(count), "--throughput", "100", "--acks", "-1")
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(tool, cluster, "VerifiableProducer", *words, "--command-config", str(settings))
        until(lambda: offsets(cluster, "verified"), r"verified:\d:[1-9]")
        cluster.kill(2)
        try:
            said = sending.result()
            assert f'"sent":{count}' in said
            assert f'"acked":{count}' in said
            assert "producer_send_error" not in said
            group = ("--group-id", "verifiers", "--reset-policy", "earliest", "--max-messages", str(count))
            read = tool(cluster, "VerifiableConsumer", "--topic", "verified", *group)
            events = [json.loads(line) for line in read.splitlines() if line.startswith("{")]
            consumed = [event["count"] for event in events if event["name"] == "records_consumed"]
            assert sum(consumed) == count
            commits = [event for event in events if event["name"] == "offsets_committed" and event["success"]]
            # A commit names the partitions of one poll, which need not be all.
            committed = {entry["partition"]: entry["offset"] for event in commits for entry in event["offsets"]}
            assert sum(committed.values()) == count
        finally:
            cluster.start(2)


def offsets(cluster: Cluster, topic: str) -> str:
    return tool(cluster, "GetOffsetShell", "--topic", topic)


def test_the_cluster_is_named_and_its_nodes_are_listed(cluster: Cluster) -> None:
    code, text = run_tool(
        "org.apache.kafka.tools.ClusterTool", "cluster-id", "--bootstrap-server", cluster.bootstrap_servers
    )
    assert (code, "Cluster ID: " in text) == (0, True)
    for via, servers in (("server", cluster.bootstrap_servers), ("controller", controllers(cluster))):
        code, text = run_tool("org.apache.kafka.tools.ClusterTool", "list-endpoints", f"--bootstrap-{via}", servers)
        assert code == 0, text
        assert len(re.findall(r"^[123]\s+127\.0\.0\.1", text, re.MULTILINE)) == 3


def test_a_broker_that_is_gone_is_unregistered(cluster: Cluster) -> None:
    cluster.stop(3)
    arguments = ("unregister", "--bootstrap-server", cluster.bootstrap_servers, "--id", "3")
    code, text = run_tool("org.apache.kafka.tools.ClusterTool", *arguments)
    assert code == 0, text
    assert "Broker 3 is no longer registered" in text
    cluster.start(3)
