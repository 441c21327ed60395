"""Which tests are meant, which broker they get, and when a row made of parts is a pass."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conformance.__main__ import _is_meant
from conformance.certificates import KEY_PASSWORD, Authority
from conformance.cluster import BarnabasCluster, KafkaCluster, fatal_error
from conformance.librdkafka_runner import Runner
from conformance.outcome import Verdict
from conformance.security import plain
from conformance.suites import librdkafka

from barnabas.testing import Broker

RAN = "[0142_reauthentication / 1.0s] [ do_test_consumer:1 ]\n"
PASSED = "| 0142_reauthentication | PASSED | 1.000s |\n"
FAILED = "| 0142_reauthentication | FAILED | 1.000s | no luck\n"


def test_a_whole_name_means_one_test_and_a_part_of_one_means_all_that_hold_it() -> None:
    names = {"0142_reauthentication", "0142_reauthentication (OAUTHBEARER)"}
    assert [_is_meant("0142_reauthentication", name, names) for name in sorted(names)] == [True, False]
    assert all(_is_meant("0142", name, names) for name in names)


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        (RAN + PASSED, Verdict.PASS),
        (RAN + FAILED, Verdict.FAIL),
        (PASSED, Verdict.SKIP),
        ("crash", Verdict.FAIL),
    ],
)
def test_a_row_of_parts_passes_if_every_part_ran_and_passed(tmp_path: Path, printed: str, verdict: Verdict) -> None:
    runner = tmp_path / "test-runner"
    runner.write_text(f"#!{sys.executable}\nprint({printed!r})\n")
    runner.chmod(0o755)
    outcome = Runner(tmp_path, "default", {}, tmp_path).outcome_of_parts("0142_reauthentication (OAUTHBEARER)")
    assert (outcome.test, outcome.verdict) == ("0142_reauthentication (OAUTHBEARER)", verdict)


@pytest.mark.parametrize("kind", [KafkaCluster, BarnabasCluster])
def test_both_kinds_get_the_same_settings_but_for_the_quorum(
    tmp_path: Path, kind: type[KafkaCluster | BarnabasCluster]
) -> None:
    with plain(tmp_path) as how:
        cluster = kind({"num.partitions": "4"}, how)
        try:
            cluster.write_properties()
            for node in cluster.nodes:
                lines = dict(line.split("=", 1) for line in node.properties.read_text().splitlines())
                assert lines["broker.rack"] == f"RACK{node.number}"
                assert f"CLIENTS://127.0.0.1:{node.client_port}" in lines["listeners"]
                assert "CLIENTS:SASL_PLAINTEXT" in lines["listener.security.protocol.map"]
                assert "user_testuser" in lines["listener.name.clients.plain.sasl.jaas.config"]
                assert lines["num.partitions"] == "4"
            ports = [port for node in cluster.nodes for port in (node.port, node.controller_port, node.client_port)]
            assert len(set(ports)) == len(ports)
        finally:
            cluster.remove()


def test_when_one_node_ends_all_do(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", "import time; time.sleep(600)"], [sys.executable, "-c", ""]]
    path = tmp_path / "commands"
    path.write_text("".join(f"{json.dumps(command)}\n" for command in commands))
    root = Path(__file__).parents[2]
    supervisor = [sys.executable, "-m", "conformance.supervisor", str(path)]
    done = subprocess.run(supervisor, cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "node 2 has ended" in done.stdout


def test_a_cluster_that_ended_says_what_ended_its_first_node_and_not_what_the_others_said_after_it() -> None:
    log = (
        "[09:29:21] ERROR [ControllerApis nodeId=2] Unexpected error handling request\n"
        "[09:29:22] ERROR [BrokerServer id=2] Fatal error during broker startup. Prepare to shutdown\n"
        "InvalidConfigurationException: Failed to load PEM SSL keystore\n"
        "\tat DefaultSslEngineFactory.java\n"
        "Caused by: PBES2 SecretKeyFactory not available\n"
        "[09:29:28] ERROR [RaftManager id=1] Graceful shutdown of RaftClient failed\n"
    )
    assert fatal_error(log).splitlines()[1:] == [
        "InvalidConfigurationException: Failed to load PEM SSL keystore",
        "Caused by: PBES2 SecretKeyFactory not available",
    ]
    assert fatal_error("[09:29:20] INFO all is well\n") == ""


def test_the_key_of_a_broker_is_encrypted_in_the_way_that_java_reads(tmp_path: Path) -> None:
    store = Authority(tmp_path, "authority").issue("broker").store
    shown = subprocess.run(["openssl", "asn1parse", "-in", store], capture_output=True, text=True, check=True)
    assert "pbeWithSHA1And3-KeyTripleDES-CBC" in shown.stdout
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(store, password=KEY_PASSWORD)


def test_what_is_about_share_groups_is_left_out_where_the_broker_offers_none(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = ["0012_produce_consume", "0171_share_consumer_consume", "0142_reauthentication (share groups)"]
    with Broker() as broker:
        peer: Any = SimpleNamespace(bootstrap=broker.bootstrap_servers)
        assert librdkafka.without_share_groups(peer, tests) == []
        monkeypatch.setattr(librdkafka, "_SHARE_GROUP_HEARTBEAT", 9999)  # an API that the broker does not offer
        assert librdkafka.without_share_groups(peer, tests) == tests[1:]
