"""A cluster for tests: a process to each broker, on free ports, below one directory; any of them can be killed.

Every broker is a controller too, up to three unless more are asked for. What a broker writes is there when it starts
again. The same settings are run by ``barnabas up --brokers``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from barnabas.broker.settings.local_cluster import CONFIG_FILE, CONTROLLERS_MAX, Address, local_cluster, properties_text
from barnabas.testing.process import ServerProcess
from barnabas.world.real import free_ports

HOST: Final = "127.0.0.1"


class Cluster:
    """``with Cluster(tmp_path) as cluster: ... cluster.bootstrap_servers``; brokers are numbered from 1."""

    def __init__(
        self,
        directory: str | Path,
        *,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        controllers: int = CONTROLLERS_MAX,
        addresses: Sequence[Address] | None = None,
    ) -> None:
        """``controllers``: how many of the first brokers are that too; ``addresses``: where, if not on free ports."""
        self.directory = Path(directory).absolute()
        addresses = addresses or _free_addresses(brokers)
        nodes = local_cluster(str(self.directory), addresses, overrides=settings, controllers=controllers)
        self._configs: dict[int, Path] = {}
        for number, given in nodes.items():
            path = self.directory / f"broker-{number}" / CONFIG_FILE
            path.parent.mkdir(parents=True)
            path.write_text(properties_text(given))
            self._configs[number] = path
        self.addresses = dict(enumerate(addresses, 1))
        self.nodes = {number: ServerProcess() for number in nodes}
        self._is_founded = False

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, whether they run or not: clients find those that do."""
        return ",".join(map(str, self.addresses.values()))

    def __enter__(self) -> Self:
        try:
            self.start_all()
        except BaseException:
            self.kill_all()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()

    def start_all(self) -> None:
        """Start those that do not run, all at once; the very first founds the cluster before."""
        waiting = sorted(number for number, node in self.nodes.items() if node.process is None)
        if not self._is_founded:
            self._spawn(waiting.pop(0), "--new-cluster")
            self.nodes[1].until_ready()
            self._is_founded = True
        for number in waiting:
            self._spawn(number)
        for number in waiting:
            self.nodes[number].until_ready()

    def start(self, number: int) -> None:
        self._spawn(number)
        self.nodes[number].until_ready()

    def _spawn(self, number: int, *more: str) -> None:
        self.nodes[number].spawn([*self.command(number), *more])

    def command(self, number: int) -> list[str]:
        """What starts this broker; tests that give each one a machine of its own put more in front."""
        return [sys.executable, "-m", "barnabas", "broker", "start", "--config", str(self._configs[number])]

    def kill(self, number: int) -> None:
        self.nodes[number].kill()

    def stop(self, number: int) -> None:
        self.nodes[number].stop()

    def pause(self, number: int) -> None:
        self.nodes[number].pause()

    def resume(self, number: int) -> None:
        self.nodes[number].resume()

    def stop_all(self) -> None:
        for number in sorted(self.nodes, reverse=True):
            self.nodes[number].stop()

    def kill_all(self) -> None:
        for node in self.nodes.values():
            node.kill()


def _free_addresses(brokers: int) -> list[Address]:
    free = free_ports(HOST, 2 * brokers)
    return [Address(HOST, *free[place : place + 2]) for place in range(0, len(free), 2)]
