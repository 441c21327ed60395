"""``barnabas up --connect`` runs a worker beside its broker, restarts it, and ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from up_process import answers, child_with, up

from barnabas.world.real import free_ports

pytest.importorskip("pyspark")


@pytest.mark.parametrize("options", [(), pytest.param(("--brokers", "2"), marks=pytest.mark.slow)])
def test_a_worker_runs_beside_the_broker_and_is_restarted(tmp_path: Path, options: tuple[str, ...]) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    url = f"http://127.0.0.1:{port}"
    with up(tmp_path, "--connect", "--connect-port", str(port), *options) as (process, _):
        assert answers(f"{url}/health")
        config = {"connector.class": "datagen", "topic": "orders"}
        body = {"name": "orders", "config": config, "initial_state": "STOPPED"}
        assert httpx.post(f"{url}/connectors", json=body, timeout=60).status_code == 201
        os.kill(child_with(process.pid, "worker"), signal.SIGKILL)
        assert answers(f"{url}/health")
        assert httpx.get(f"{url}/connectors", timeout=60).json() == ["orders"]
        assert process.poll() is None
        child = child_with(process.pid, "worker")
        assert (tmp_path / "data" / "connect").is_dir()
    assert not Path(f"/proc/{child}").exists(), "it does not outlive the broker"


def test_the_port_needs_the_option(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "barnabas", "up", "--connect-port", "8083", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "--connect-port goes with --connect" in done.stderr
