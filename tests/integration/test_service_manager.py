"""Under systemd: the broker sends READY when it serves and STOPPING when it stops, over the notify socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ANSWER_SECONDS_MAX = 60


@pytest.mark.parametrize("is_abstract", [False, True])
def test_the_service_manager_learns_that_the_broker_is_ready_and_that_it_stops(
    tmp_path: Path, *, is_abstract: bool
) -> None:
    name = f"@barnabas-{os.getpid()}-notify" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if is_abstract else name)
        manager.settimeout(ANSWER_SECONDS_MAX)
        command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data-dir", str(tmp_path / "data")]
        broker = subprocess.Popen(
            command, env=os.environ | {"NOTIFY_SOCKET": name}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert b"READY=1" in manager.recv(4096).split(b"\n")
            broker.send_signal(signal.SIGTERM)
            assert manager.recv(4096) == b"STOPPING=1"
            assert broker.wait(ANSWER_SECONDS_MAX) == 0
        finally:
            broker.kill()
            broker.wait()
