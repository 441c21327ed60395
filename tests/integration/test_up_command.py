"""``barnabas up``, ``status`` and ``down`` as a user meets them: processes, signals, variables, files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.running import NOTE_FILE, is_held

SECONDS_MAX = 60


def barnabas(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "barnabas", *words],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
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
