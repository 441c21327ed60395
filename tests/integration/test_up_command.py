"""``barnabas up``, ``status`` and ``down`` as a user meets them: processes, signals, variables, files."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from changing_listeners import free_port

from barnabas.cli.serve.running import NOTE_FILE, is_held

SECONDS_MAX = 60


# The file that comes with Kafka, for one node that is its own controller.
KRAFT_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{client}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={data}
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def barnabas(*words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "barnabas", *words],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        cwd=cwd,
        env={**os.environ, **environment},
    )


def stop(data: Path) -> None:
    if is_held(data):
        assert barnabas("down", "--data-dir", str(data)).returncode == 0


def test_a_broker_in_the_background_is_looked_after_and_stopped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    try:
        started = barnabas("up", "--detach", "--port", "0", "--data-dir", str(data))
        assert started.returncode == 0, started.stderr
        (servers,) = [line.split()[1] for line in started.stdout.splitlines() if line.startswith("  KAFKA")]
        status = json.loads(barnabas("status", "--data-dir", str(data), "-o", "json").stdout)
        assert [(row["broker"], row["state"], row["kafka"]) for row in status] == [(1, "answers", servers)]
        assert barnabas("topic", "create", "t", "-b", servers).returncode == 0
        again = barnabas("up", "--detach", "--port", "0", "--data-dir", str(data))
        assert again.returncode == 1
        assert again.stderr.count("\n") == 1
    finally:
        stop(data)
    assert not is_held(data)
    assert barnabas("status", "--data-dir", str(data)).returncode == 1
    assert "no broker runs" in barnabas("down", "--data-dir", str(data)).stderr


def metrics_of(started: subprocess.CompletedProcess[str]) -> list[str]:
    assert started.returncode == 0, started.stderr
    return [line.split()[1] for line in started.stdout.splitlines() if line.startswith("  METRICS")]


def test_brokers_that_are_started_without_a_file_show_their_metrics_each_at_its_own_port(tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    try:
        found = []
        for data in places:
            (address,) = metrics_of(barnabas("up", "--detach", "--port", "0", "--data-dir", str(data)))
            with urllib.request.urlopen(address, timeout=10) as answer:
                assert b"kafka_server_kafkaserver_brokerstate 3" in answer.read()
            (status,) = json.loads(barnabas("status", "--data-dir", str(data), "-o", "json").stdout)
            assert f"{status['http']}/metrics" == address
            found.append(address)
        assert len(set(found)) == 2
    finally:
        for data in places:
            stop(data)


def test_metrics_stay_off_where_a_file_or_an_option_says_nothing_else(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("listeners=PLAINTEXT://127.0.0.1:0\noffsets.topic.replication.factor=1\n")
    for place, words in (("a", ("--config", str(config))), ("b", ("--port", "0", "--set", "barnabas.http.port=0"))):
        data = tmp_path / place
        try:
            assert metrics_of(barnabas("up", "--detach", "--data-dir", str(data), *words)) == []
        finally:
            stop(data)


def test_a_port_that_somebody_else_has_is_named_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        listening = barnabas("up", "--port", taken, "--data-dir", str(tmp_path))
        wanted = f"barnabas.http.port={taken}"
        showing = barnabas("up", "--port", "0", "--data-dir", str(tmp_path), "--set", wanted)
    assert (listening.returncode, showing.returncode) == (1, 1)
    assert f"127.0.0.1:{taken}: address already in use; --port N" in listening.stderr
    assert showing.stderr == f"barnabas: cannot listen on {wanted}: address already in use\n"


def test_a_killed_broker_is_not_taken_for_a_running_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert barnabas("up", "--detach", "--port", "0", "--data-dir", str(data)).returncode == 0
    note = json.loads((data / NOTE_FILE).read_text())
    os.kill(note["pid"], signal.SIGKILL)
    while is_held(data):
        pass
    assert (data / NOTE_FILE).exists()
    assert "no broker runs" in barnabas("status", "--data-dir", str(data)).stderr
    assert "deleted" in barnabas("down", "--purge", "--yes", "--data-dir", str(data)).stdout
    assert not data.exists()


def test_a_usual_file_for_kafka_starts_a_broker_as_it_is_and_in_its_own_directory(tmp_path: Path) -> None:
    data, work = tmp_path / "kraft-combined-logs", tmp_path / "work"
    work.mkdir()
    client, controller = free_port(), free_port()
    config = tmp_path / "server.properties"
    config.write_text(KRAFT_FILE.format(client=client, controller=controller, data=data))
    try:
        started = barnabas("up", "--detach", "--config", str(config), cwd=work)
        assert started.returncode == 0, started.stderr
        assert f"LOG      {data}/barnabas.log" in started.stdout
        assert f"`barnabas status --data-dir {data}`" in started.stdout
        servers = f"localhost:{client}"
        assert barnabas("topic", "create", "t", "-b", servers).returncode == 0
        quorum = json.loads(barnabas("cluster", "quorum", "-b", servers, "-o", "json").stdout)
        assert [voter["id"] for voter in quorum["voters"]] == [1]
        assert (data / "t-0").is_dir()
        assert not list(work.iterdir()), "nothing is written where the command runs"
    finally:
        stop(data)


def test_settings_of_the_command_line_choose_the_directory_of_a_broker_in_the_background(tmp_path: Path) -> None:
    data = tmp_path / "elsewhere"
    try:
        started = barnabas("up", "--detach", "--port", "0", "--set", f"log.dirs={data}", cwd=tmp_path)
        assert started.returncode == 0, started.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]
    finally:
        stop(data)


def test_settings_come_from_file_environment_and_options_in_that_order(tmp_path: Path) -> None:
    data = tmp_path / "data"
    config = tmp_path / "server.properties"
    config.write_text(
        "listeners=PLAINTEXT://127.0.0.1:0\nnode.id=7\nnum.partitions=2\nlog.retention.hours=5\nnum.io.threads=8\n"
        "offsets.topic.replication.factor=1\n"
    )
    variables = {"BARNABAS_SET_NUM_PARTITIONS": "3", "BARNABAS_SET_LOG_RETENTION_HOURS": "6"}
    words = ("up", "--detach", "--config", str(config), "--data-dir", str(data), "--set", "log.retention.hours=7")
    try:
        started = barnabas(*words, **variables)
        assert started.returncode == 0, started.stderr
        (status,) = json.loads(barnabas("status", "--data-dir", str(data), "-o", "json").stdout)
        assert status["broker"] == 7
        described = barnabas("config", "get", "broker", "7", "-o", "json", "-b", status["kafka"])
        values = {row["name"]: row["value"] for row in json.loads(described.stdout)}
        assert (values["num.partitions"], values["log.retention.hours"]) == ("3", "7")
        assert "num.io.threads is set. No effect here" in (data / "barnabas.log").read_text()
    finally:
        stop(data)


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (("--set", "log.retenion.hours=1"), {}, "did you mean 'log.retention.hours'"),
        (("--set", "log.retention.hours=soon"), {}, "whole number"),
        ((), {"BARNABAS_SET_LOG_RETENION_HOURS": "1"}, "BARNABAS_SET_LOG_RETENTION_HOURS"),
        (("--config", "/nowhere"), {}, "No such file"),
        (("--set", "listeners=SASL_PLAINTEXT://127.0.0.1:0"), {}, "sasl.enabled.mechanisms"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(
    tmp_path: Path, words: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    done = barnabas("up", "--port", "0", "--data-dir", str(tmp_path), *words, **variables)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
