"""``barnabas up`` runs the registry beside its broker, restarts it, and is not disturbed by what happens to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from barnabas.world.real import free_ports

SECONDS_MAX = 60.0


@contextmanager
def up(tmp_path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and where its broker is."""
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data-dir", str(tmp_path / "data"), *options]
    errors = (tmp_path / "errors").open("w")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().split()[1]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS_MAX)
        process.stdout.close()
        errors.close()


def answers(url: str) -> bool:
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/schemas/types", timeout=5).status_code == 200:
                return True
        except httpx.HTTPError:
            time.sleep(0.1)
    return False


def rest_process(parent: int) -> int:
    """The pid of the child that serves HTTP."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            words = (path.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(fields[1]) == parent and b"rest" in words:
            return int(path.parent.name)
    raise AssertionError("there is no REST process")


@pytest.mark.parametrize("options", [(), pytest.param(("--brokers", "2"), marks=pytest.mark.slow)])
def test_the_registry_runs_beside_brokers_and_is_restarted(tmp_path: Path, options: tuple[str, ...]) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    url = f"http://127.0.0.1:{port}"
    with up(tmp_path, "--registry-port", str(port), *options) as (process, _):
        assert answers(url)
        body = {"schema": '"string"'}
        assert httpx.post(f"{url}/subjects/a/versions", json=body, timeout=30).json()["id"] == 1
        child = rest_process(process.pid)
        os.kill(child, signal.SIGKILL)
        assert answers(url)
        assert httpx.get(f"{url}/subjects").json() == ["a"]
        assert process.poll() is None
        child = rest_process(process.pid)
    assert not Path(f"/proc/{child}").exists(), "it does not outlive the broker"


def test_a_busy_port_leaves_the_broker_alone(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with up(tmp_path, "--registry-port", str(port)) as (process, servers):
            deadline = time.monotonic() + SECONDS_MAX
            while "is in use" not in (tmp_path / "errors").read_text() and time.monotonic() < deadline:
                time.sleep(0.1)
            assert process.poll() is None
            listed = subprocess.run(
                [sys.executable, "-m", "barnabas", "topic", "list", "-b", servers, "-o", "json"],
                capture_output=True,
                text=True,
                check=True,
            )
            assert isinstance(json.loads(listed.stdout), list)
    assert "--registry-port" in (tmp_path / "errors").read_text()


def test_a_broker_at_any_port_has_no_registry_unless_it_is_asked_for(tmp_path: Path) -> None:
    with up(tmp_path) as (process, _), pytest.raises(AssertionError, match="no REST process"):
        rest_process(process.pid)
