"""What a cluster of three says of itself while a broker hangs and another one dies: numbers, and what doctors find."""

from __future__ import annotations

import json
import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from doctoring import doctor, expect
from waiting import until
from watched_cluster import Watched

from barnabas.cli.main import main
from barnabas.cli.terminal.verbs import now_ms
from barnabas.testing.cluster import Cluster

SECONDS_MAX = 60.0
KEPT_SECONDS = 25.0  # a broker that finds no controller looks for one half a minute
SAFE, ALONE, STRICT = "safe", "alone", "strict"
MANAGER = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
SETTINGS = {"replica.lag.time.max.ms": "1000", "broker.session.timeout.ms": "20000"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with Watched(tmp_path_factory.mktemp("cluster"), SETTINGS) as running:
        where = ["-b", running.bootstrap_servers]
        assert main(["topic", "create", SAFE, "-p", "3", "-r", "3", "-c", "min.insync.replicas=2", *where]) == 0
        assert main(["topic", "create", ALONE, "-p", "3", "-r", "1", "-c", "min.insync.replicas=1", *where]) == 0
        strict = ["-c", "min.insync.replicas=3", "-c", "unclean.leader.election.enable=true"]
        assert main(["topic", "create", STRICT, "-p", "1", "-r", "3", *strict, *where]) == 0
        assert main(["produce", SAFE, "-v", "x", *where]) == 0
        yield running


def test_a_cluster_that_is_well(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    pages = {broker: cluster.numbers(broker) for broker in cluster.nodes}
    for page in pages.values():
        assert page["kafka_brokers"] == 3
        assert page[f"{CONTROLLER}offlinepartitionscount"] == 0
        assert page[f"{MANAGER}underreplicatedpartitions"] == 0
        assert page[f"{MANAGER}underminisrpartitioncount"] == 0
        assert page["process_open_fds"] > 0
        assert {'{listener="PLAINTEXT"}', '{listener="CONTROLLER"}'} == {
            name.removeprefix("kafka_server_socket_server_metrics_connection_count")
            for name in page
            if name.startswith("kafka_server_socket_server_metrics_connection_count")
        }
    assert sum(page[f"{CONTROLLER}activecontrollercount"] for page in pages.values()) == 1
    states = [name for page in pages.values() for name in page if "raftmetrics_current_state" in name]
    assert sorted(re.findall(r'"(\w+)"', " ".join(states))) == ["follower", "follower", "leader"]
    assert sum(page[f"{MANAGER}leadercount"] for page in pages.values()) == sum(
        page["kafka_controller_kafkacontroller_globalpartitioncount"] for page in pages.values()
    ) / len(pages)
    code, findings = doctor(cluster.bootstrap_servers, capsys)
    assert code == 0, findings


def test_what_is_lost_if_broker_2_dies_now(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    code, findings = doctor(cluster.bootstrap_servers, capsys, "--broker", "2")
    assert code == 0
    lost = expect(
        findings,
        "death-loses",
        severity="warning",
        about="if broker 2 dies now",
        evidence=rf"no other replica is in sync: {ALONE}-\d$",
        mend=f"barnabas reassign plan {ALONE} -r 3 -f plan.json, then barnabas reassign run plan.json$",
    )
    assert lost["what"].startswith("1 partition cannot be read")
    expect(
        findings,
        "death-stops-writes",
        severity="warning",
        about="if broker 2 dies now",
        evidence=f"one less than min.insync.replicas asks: {STRICT}-0$",
        mend="add brokers first: 4 replicas need as many$",
    )
    assert SAFE not in json.dumps(findings)


def test_topics_that_promise_less_than_the_cluster_could(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    _, findings = doctor(cluster.bootstrap_servers, capsys)
    expect(
        findings,
        "one-replica",
        severity="warning",
        about="1 topic",
        evidence=f"^{ALONE}$",
        mend=f"^barnabas reassign plan {ALONE} -r 3 -f plan.json, then barnabas reassign run plan.json",
    )
    expect(
        findings,
        "unclean-election",
        severity="warning",
        about="1 topic",
        evidence=f"unclean.leader.election.enable=true: {STRICT}$",
        mend=f"^barnabas config set topic {STRICT} unclean.leader.election.enable=false$",
    )


def test_a_broker_whose_death_harms_nobody_and_two_whose_death_stops_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.ops.doctor.facts.QUORUM_SECONDS_MAX", 1.0)
    with Cluster(tmp_path) as small:
        where = ["-b", small.bootstrap_servers]
        assert main(["topic", "create", SAFE, "-p", "3", "-r", "3", "-c", "min.insync.replicas=2", *where]) == 0
        until(lambda: doctor(small.bootstrap_servers, capsys)[1] == [], "it does not become well")
        code, findings = doctor(small.bootstrap_servers, capsys, "--broker", "2")
        assert code == 0
        expect(
            findings,
            "death-harmless",
            severity="note",
            about="if broker 2 dies now",
            evidence=r"3 partitions of its have replicas in sync on 1,3; \d that it leads are led by them",
            mend="before a planned stop: barnabas broker decommission 2",
        )
        small.kill(1)
        small.kill(2)
        started = time.monotonic()
        code, findings = doctor(str(small.addresses[3]), capsys)
        assert code == 1
        assert time.monotonic() - started < KEPT_SECONDS, "it does not wait for what brokers wait for"
        expect(
            findings,
            "no-controller",
            severity="bad",
            about="the controllers",
            evidence="nobody answers for it within 1 s",
            mend="a majority of the voters; barnabas cluster quorum lists them$",
        )
        for dead in (1, 2):
            expect(
                findings,
                "unreachable",
                severity="bad",
                about=f"broker {dead}",
                evidence="Connection refused",
                mend="if it does not run, start it",
            )
        path = tmp_path / "a.zip"
        words = ["--seconds", "1", "--data-dir", str(tmp_path / "broker-3"), "-b", str(small.addresses[3])]
        assert main(["debug", "bundle", "-f", str(path), *words]) == 0
        with zipfile.ZipFile(path) as archive:
            steps = {row["step"]: row for row in json.loads(archive.read("manifest.json"))}
            assert {topic["name"] for topic in json.loads(archive.read("topics.json"))} == {SAFE}
        assert "within 1 s" in steps["quorum.json"]["error"]


def test_a_leader_is_given_to_another_replica(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-b", cluster.bootstrap_servers]
    for broker in (1, 3):
        assert main(["leader", "transfer", f"{SAFE}-0", "--to", str(broker), *where]) == 0
        capsys.readouterr()
        assert main(["cluster", "metadata", SAFE, "-o", "json", *where]) == 0
        row = json.loads(capsys.readouterr().out)[0]
        assert (row["leader"], row["replicas"][0]) == (broker, broker)


def test_a_broker_that_hangs_is_seen_by_those_who_lead(cluster: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    active = next(
        broker for broker in cluster.nodes if cluster.numbers(broker)[f"{CONTROLLER}activecontrollercount"] == 1
    )
    hung = next(broker for broker in cluster.nodes if broker != active)
    others = [broker for broker in cluster.nodes if broker != hung]
    before = cluster.total(f"{MANAGER}isrshrinks_total", *others)
    where = ["-b", str(cluster.addresses[others[0]])]
    capsys.readouterr()
    assert main(["cluster", "metadata", SAFE, "-o", "json", *where]) == 0
    led = next(row["partition"] for row in json.loads(capsys.readouterr().out) if row["leader"] in others)
    cluster.pause(hung)
    try:
        # Only who lacks something can be too late; acks=all waits until the one that hangs counts no more.
        assert main(["produce", SAFE, "-p", str(led), "-v", "y", *where]) == 0
        until(lambda: cluster.total(f"{MANAGER}isrshrinks_total", *others) > before, "no leader has shrunk an ISR")
        until(lambda: cluster.total(f"{MANAGER}underreplicatedpartitions", *others) > 0, "nothing is under-replicated")
    finally:
        cluster.resume(hung)
    until(lambda: cluster.total(f"{MANAGER}isrexpands_total") > 0, "no leader has taken it back")
    until(lambda: cluster.total(f"{MANAGER}underreplicatedpartitions") == 0, "it does not catch up")
    until(lambda: cluster.total('kafka_server_replicafetchermanager_maxlag{clientid="Replica"}') == 0, "it lags")


def test_a_broker_that_dies_is_missed(
    cluster: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = 2
    others = [broker for broker in cluster.nodes if broker != dead]
    where = ["-b", cluster.bootstrap_servers]
    assert main(["cluster", "metadata", ALONE, "-o", "json", *where]) == 0
    (lost,) = [row["partition"] for row in json.loads(capsys.readouterr().out) if row["leader"] == dead]
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "cut", "log_level": 2})
    producer.init_transactions(SECONDS_MAX)
    producer.begin_transaction()
    producer.produce(ALONE, b"v", partition=lost)
    assert producer.flush(SECONDS_MAX) == 0
    cluster.kill(dead)
    until(lambda: all(cluster.numbers(one)[f"{CONTROLLER}offlinepartitionscount"] == 1 for one in others), "offline")
    until(lambda: cluster.total(f"{MANAGER}underreplicatedpartitions", *others) >= 3, "under-replicated")
    page = cluster.numbers(others[0])
    assert page["kafka_brokers"] == 2
    assert page[f"{CONTROLLER}fencedbrokercount"] == 1
    assert cluster.total(f"{CONTROLLER}activecontrollercount", *others) == 1
    assert cluster.total(f"{MANAGER}atminisrpartitioncount", *others) >= 3, "two of three are what safe asks for"
    producer.commit_transaction(SECONDS_MAX)  # decided, and one who should hear of it is dead
    monkeypatch.setattr("barnabas.cli.cluster.doctor.now_ms", lambda: now_ms() + 60_000)  # who looks, looks later
    code, findings = doctor(cluster.bootstrap_servers, capsys)
    assert code == 1
    expect(
        findings,
        "fenced",
        severity="bad",
        about="broker 2",
        evidence="DescribeCluster lists it as fenced",
        mend="^start it; or, if it is gone for good, barnabas broker forget 2$",
    )
    expect(
        findings,
        "leaderless",
        severity="bad",
        about="1 partition",
        evidence=f"^{ALONE}-{lost}$",
        mend="^start broker 2, which has their replicas$",
    )
    expect(
        findings,
        "under-min-isr",
        severity="bad",
        about="1 partition",
        evidence=rf"^{STRICT}-0 \(2 of 3\)$",
        mend="^start broker 2, or wait until it has caught up$",
    )
    (short,) = [each for each in findings if each["kind"] == "out-of-sync"]
    expect(
        findings,
        "out-of-sync",
        severity="warning",
        about=short["about"],
        evidence=r"-\d+ \(in sync 1,3 of 1,2,3\)",
        mend="^start broker 2, or wait until it has caught up$",
    )
    expect(
        findings,
        "thin-quorum",
        severity="warning",
        about="the controllers",
        evidence="of the voters 1, 2, 3 a majority of 2 is needed, and 2 are gone",
        mend="^start those that are gone",
    )
    expect(
        findings,
        "transaction-ending",
        severity="bad",
        about="transaction cut",
        evidence=rf"PrepareCommit for \d+ .*: {ALONE}-{lost}$",
        mend="^start the brokers that lead these partitions$",
    )
    assert any("would refuse producers with acks=all" in each["what"] for each in findings)
    assert main(["cluster", "health", "-b", cluster.bootstrap_servers]) == 1
    cluster.start(dead)
    until(lambda: cluster.total(f"{MANAGER}underreplicatedpartitions") == 0, "it does not come back")
    assert cluster.numbers(1)[f"{CONTROLLER}offlinepartitionscount"] == 0
