"""``barnabas up --brokers 3`` and the commands that look after a cluster, as a person types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SECONDS_MAX = 90


class Home:
    """A cluster that was started from the command line, and commands against it."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        command = ["up", "--brokers", "3", "--port", "0", "--data-dir", str(directory), *options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "barnabas", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("READY "), self.process.communicate()
        self.servers = line.split()[1]

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "BARNABAS_BOOTSTRAP_SERVERS": self.servers},
            timeout=SECONDS_MAX,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def value(self, *words: str) -> Any:
        return json.loads(self.run(*words, "-o", "json"))

    def until_healthy(self) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            done = subprocess.run(
                [sys.executable, "-m", "barnabas", "cluster", "health", "-b", self.servers],
                capture_output=True,
                check=False,
            )
            if done.returncode == 0:
                return
            assert time.monotonic() < deadline, done
            time.sleep(0.2)

    def stop(self) -> str:
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=SECONDS_MAX)
        return said


@pytest.fixture(params=[()])
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Home]:
    home = Home(tmp_path / "data", *request.param)
    try:
        yield home
    finally:
        if home.process.poll() is None:
            home.stop()


@pytest.mark.parametrize("home", [("--restart",)], indirect=True)
def test_a_cluster_is_one_command_and_one_interrupt(home: Home) -> None:
    home.run("topic", "create", "orders", "-p", "6")
    info = home.value("cluster", "info")
    assert [broker["id"] for broker in info["brokers"]] == [1, 2, 3]
    assert info["voters"] == [1, 2, 3]
    assert [broker["leads"] for broker in info["brokers"]] == [2, 2, 2]
    assert home.value("cluster", "health") == {"healthy": True, "findings": []}
    assert len(home.value("cluster", "quorum")["voters"]) == 3

    running = {row["broker"]: row["process"] for row in home.value("status", "--data-dir", str(home.directory))}
    os.kill(running[2], signal.SIGKILL)
    home.until_healthy()

    plan = str(home.directory / "plan.json")
    home.run("reassign", "plan", "orders", "--brokers", "1,3", "-r", "2", "--file", plan)
    home.run("reassign", "run", plan, "--yes", "--throttle", "100MB")
    assert limits(home, "orders", broker=1) == {}
    assert home.value("reassign", "status") == []
    (topic,) = home.value("topic", "describe", "orders")
    assert {tuple(sorted(part["replicas"])) for part in topic["partitions"]} == {(1, 3)}
    home.run("leader", "elect")
    (topic,) = home.value("topic", "describe", "orders")
    assert all(part["leader"] == part["replicas"][0] for part in topic["partitions"])

    said = home.stop()
    assert "broker 2 was killed by signal 9; it is started again" in said
    assert home.process.returncode == 0
    again = Home(home.directory)
    assert again.servers == home.servers
    assert [broker["id"] for broker in again.value("broker", "list")] == [1, 2, 3]
    again.stop()


@pytest.mark.slow
def test_a_move_is_slowed_down_watched_and_stopped(home: Home) -> None:
    home.run("topic", "create", "orders", "-p", "1", "-r", "1")
    values = home.directory / "values"
    values.write_text("".join(f"{chr(ord('a') + number) * 900_000}\n" for number in range(9)))
    home.run("produce", "orders", "-i", str(values), "-z", "none")
    (topic,) = home.value("topic", "describe", "orders")
    (leader,) = topic["partitions"][0]["replicas"]
    target = leader % 3 + 1
    plan = home.directory / "plan.json"
    moved = {"topic": "orders", "partition": 0, "replicas": [target]}
    plan.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    command = [sys.executable, "-m", "barnabas", "reassign", "run", str(plan), "--yes", "-b", home.servers]
    with subprocess.Popen([*command, "--throttle", "200kB"], stderr=subprocess.PIPE, text=True) as run:
        seen = until_under_way(home)
        assert limits(home, "orders", broker=target) == {
            "leader.replication.throttled.replicas": f"0:{leader}",
            "follower.replication.throttled.replicas": f"0:{target}",
            "leader.replication.throttled.rate": "200000",
            "follower.replication.throttled.rate": "200000",
        }
        assert [row["broker"] for row in seen["progress"]] == [target]
        assert seen["progress"][0]["size_bytes"] > 8_000_000
        assert seen["progress"][0]["percent"] < 100
        run.send_signal(signal.SIGINT)
        assert run.stderr is not None
        assert "the moves go on, within the limit" in run.stderr.read()
    assert " %" in home.run("reassign", "status")
    assert "1 moves were stopped" in home.run("reassign", "cancel", "--yes")
    assert limits(home, "orders", broker=target) == {}
    home.run("reassign", "run", str(plan), "--yes", "--throttle", "50MB")
    assert limits(home, "orders", broker=target) == {}
    (topic,) = home.value("topic", "describe", "orders")
    assert topic["partitions"][0]["replicas"] == [target]


def until_under_way(home: Home) -> Any:
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := home.value("reassign", "status")) or not found[0]["progress"][0]["copied_bytes"]:
        assert time.monotonic() < deadline, found
    return found[0]


def limits(home: Home, topic: str, *, broker: int) -> dict[str, str]:
    """What is set of a throttle on a topic and on a broker."""
    rows = [*home.value("config", "get", "topic", topic), *home.value("config", "get", "broker", str(broker))]
    return {row["name"]: row["value"] for row in rows if "replication.throttled" in row["name"] and row["value"]}


@pytest.mark.slow
def test_a_broker_is_emptied_and_forgotten(home: Home) -> None:
    home.run("topic", "create", "orders", "-p", "4", "-r", "2")
    home.run("broker", "decommission", "3", "--yes")
    (topic,) = home.value("topic", "describe", "orders")
    assert {tuple(sorted(part["replicas"])) for part in topic["partitions"]} == {(1, 2)}
    assert "is running: stop it first" in _refused(home, "broker", "forget", "3", "--yes")
    running = {row["broker"]: row["process"] for row in home.value("status", "--data-dir", str(home.directory))}
    os.kill(running[3], signal.SIGTERM)
    deadline = time.monotonic() + SECONDS_MAX
    while [broker["id"] for broker in home.value("broker", "list") if not broker["is_fenced"]] != [1, 2]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    home.run("broker", "forget", "3", "--yes")
    assert [voter["id"] for voter in home.value("cluster", "quorum")["voters"]] == [1, 2]
    assert [broker["id"] for broker in home.value("broker", "list")] == [1, 2]


def _refused(home: Home, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", *words, "-b", home.servers], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done
    return done.stderr
