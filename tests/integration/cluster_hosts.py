"""A machine to each broker: network namespaces on one bridge, between which the network can be cut and healed.

It takes the rights of root and the program ``ip``; tests ask ``why_not`` first. A cut is silent, as when a cable is
pulled: each side gets a wrong hardware address for the other, so that what it sends arrives nowhere. Clients on the
host itself still reach everyone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from barnabas.broker.settings.local_cluster import Address
from barnabas.testing import Cluster

NOWHERE = "02:00:00:00:00:ff"  # the hardware address of nobody
BROKER_PORT, CONTROLLER_PORT = 9092, 9093


def why_not() -> str:
    """The reason for which namespaces cannot be made here, or nothing."""
    if os.geteuid() != 0:
        return "network namespaces need the rights of root"
    if shutil.which("ip") is None:
        return "the program `ip` is not installed"
    name = f"bnb{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    if tried.returncode != 0:
        return "network namespaces cannot be made here"
    _ip("netns", "del", name)
    return ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Hosts:
    """Hosts are numbered from 1; ``address`` is theirs, ``inside`` a command line that runs there."""

    def __init__(self, count: int) -> None:
        self._id = os.getpid() % 10_000
        self._subnet = f"10.{100 + self._id // 256 % 100}.{self._id % 256}"
        self.numbers = list(range(1, count + 1))

    @property
    def _bridge(self) -> str:
        return f"bnb{self._id}"

    def _name(self, number: int) -> str:
        return f"bnb{self._id}h{number}"

    def address(self, number: int) -> str:
        return f"{self._subnet}.{10 + number}"

    def inside(self, number: int, command: Sequence[str]) -> list[str]:
        return ["ip", "netns", "exec", self._name(number), *command]

    def make(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{self._subnet}.1/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number in self.numbers:
            name = self._name(number)
            _ip("netns", "add", name)
            _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", name, "master", self._bridge, "up")
            _ip("-n", name, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def remove(self) -> None:
        for number in self.numbers:
            subprocess.run(["ip", "netns", "del", self._name(number)], capture_output=True)
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True)

    def cut(self, some: Iterable[int], others: Iterable[int]) -> None:
        """Nothing arrives any more, from neither side; nobody is told."""
        for first, second in _pairs(some, others):
            to = (self.address(second), "lladdr", NOWHERE, "dev", "eth0", "nud", "permanent")
            _ip("-n", self._name(first), "neighbour", "replace", *to)

    def heal(self, some: Iterable[int], others: Iterable[int]) -> None:
        for first, second in _pairs(some, others):
            _ip("-n", self._name(first), "neighbour", "del", self.address(second), "dev", "eth0")


def _pairs(some: Iterable[int], others: Iterable[int]) -> list[tuple[int, int]]:
    there = [(first, second) for first in some for second in others]
    return there + [(second, first) for first, second in there]


class HostedCluster(Cluster):
    """A cluster of which every broker has a host of its own, the first ones."""

    def __init__(self, directory: Path, hosts: Hosts, *, brokers: int = 3) -> None:
        self.hosts = hosts
        numbers = hosts.numbers[:brokers]
        addresses = [Address(hosts.address(number), BROKER_PORT, CONTROLLER_PORT) for number in numbers]
        super().__init__(directory, addresses=addresses)

    def command(self, number: int) -> list[str]:
        return self.hosts.inside(number, super().command(number))


@contextmanager
def hosts_of(count: int) -> Iterator[Hosts]:
    hosts = Hosts(count)
    try:
        hosts.make()
        yield hosts
    finally:
        hosts.remove()
