"""A Connect worker as a child of ``barnabas up --connect``. Its checkpoints and logs are in the data directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from barnabas.cli.serve.side_process import SideProcess
from barnabas.cli.terminal.rest_services import CONNECT

DIRECTORY: Final = "connect"  # below the data directory
HOST: Final = "127.0.0.1"  # the REST API of a worker without users listens nowhere else
STOP_SECONDS_MAX: Final = 45.0  # the driver finishes its batches


class ConnectProcess(SideProcess):
    name = "the Connect worker"
    advice = "pass --connect-port N to start the Connect worker on another port"
    stop_seconds_max = STOP_SECONDS_MAX

    def __init__(self, *, port: int, data_dir: Path, listener: str) -> None:
        """``listener`` is the broker's first one; a client without credentials must be able to use it."""
        super().__init__()
        self._is_open = listener.upper().startswith("PLAINTEXT://")
        self._port = port
        self._data_dir = data_dir

    @property
    def is_wanted(self) -> bool:
        return self._is_open and not CONNECT.missing

    def lines(self) -> list[str]:
        """The line of the banner."""
        if not self._is_open:
            return [f"  {CONNECT.title} not started: the broker asks for credentials; see barnabas connect worker -h"]
        if CONNECT.missing:
            return [f"  {CONNECT.title} not installed: {CONNECT.install}"]
        return [f"  {CONNECT.title} http://{HOST}:{self._port}"]

    def command(self, servers: str) -> list[str]:
        words = ["connect", "worker", "--with-parent", "--bootstrap-server", servers]
        words += ["--host", HOST, "--port", str(self._port), "--data-dir", str(self._data_dir / DIRECTORY)]
        return [*words, "-X", "security.protocol=PLAINTEXT"]
