"""``barnabas up`` runs the registry beside its broker, restarts it, and is not disturbed by what happens to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from up_process import SECONDS_MAX, answers, child_with, up

from barnabas.world.real import free_ports


@pytest.mark.parametrize("options", [(), pytest.param(("--brokers", "2"), marks=pytest.mark.slow)])
def test_the_registry_runs_beside_brokers_and_is_restarted(tmp_path: Path, options: tuple[str, ...]) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    url = f"http://127.0.0.1:{port}"
    with up(tmp_path, "--registry-port", str(port), *options) as (process, _):
        assert answers(f"{url}/schemas/types")
        body = {"schema": '"string"'}
        assert httpx.post(f"{url}/subjects/a/versions", json=body, timeout=30).json()["id"] == 1
        child = child_with(process.pid, "rest")
        os.kill(child, signal.SIGKILL)
        assert answers(f"{url}/schemas/types")
        assert httpx.get(f"{url}/subjects").json() == ["a"]
        assert process.poll() is None
        child = child_with(process.pid, "rest")
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
    with up(tmp_path) as (process, _), pytest.raises(AssertionError, match="no process rest"):
        child_with(process.pid, "rest")


def test_a_broker_in_the_background_names_the_extra_that_is_missing(tmp_path: Path) -> None:
    """And where it is installed, the registry's address."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['grpc_tools'] = None\n")
    (port,) = free_ports("127.0.0.1", 1)
    for path, line in (
        (str(tmp_path), "  REGISTRY not installed: pip install 'barnabas[registry]'"),
        ("", f"  REGISTRY http://127.0.0.1:{port}"),
    ):
        words = ("--port", "0", "--registry-port", str(port), "--data-dir", str(tmp_path / f"data{bool(path)}"))
        command = [sys.executable, "-m", "barnabas"]
        environment = {**os.environ, "PYTHONPATH": path}
        try:
            started = subprocess.run(
                [*command, "up", "--detach", *words], capture_output=True, text=True, check=True, env=environment
            )
            assert line in started.stdout.splitlines()
        finally:
            subprocess.run([*command, "down", *words[-2:]], capture_output=True, check=False)
