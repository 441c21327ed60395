"""A schema registry for tests, in a process of its own: for any client that speaks Confluent's REST API."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Self

from barnabas.testing.process import ServerProcess


class RegistryProcess(ServerProcess):
    """``with RegistryProcess(broker.bootstrap_servers) as registry: ... registry.url``."""

    def __init__(self, bootstrap_servers: str, *, port: int = 0, options: Sequence[str] = ()) -> None:
        """``options`` are those of ``barnabas registry``."""
        super().__init__()
        self._servers = bootstrap_servers
        self._port = port
        self._options = list(options)
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it answers. A second start after ``kill`` takes the same port."""
        command = [sys.executable, "-m", "barnabas", "registry", "--bootstrap-server", self._servers]
        self.spawn([*command, "--port", str(self._port), *self._options])
        self.url = self.until_ready()
        self._port = int(self.url.rpartition(":")[2])
