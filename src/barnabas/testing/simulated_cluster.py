"""A whole cluster on the simulated loop: a host, a disk and a life or many to each node, all from one seed.

The nodes run the production code. Tests start, kill, freeze, slow and cut them off; ``invariants`` looks at what they
hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Final

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.local_cluster import Address, local_cluster
from barnabas.testing.loop import SimulatedLoop
from barnabas.testing.world import SeededEntropy, SimulatedClock, simulated_world
from barnabas.world.memory import MemoryDisk
from barnabas.world.world import World

BROKER_PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
DATA: Final = "/data"
CLIENTS: Final = "clients"  # the host on which a test itself runs


class SimulatedCluster:
    def __init__(self, seed: int, *, brokers: int = 3, settings: Mapping[str, str] | None = None) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.loop = loop
        self.network = loop.network
        self.hosts = {number: f"node{number}" for number in range(1, brokers + 1)}
        addresses = [Address(host, BROKER_PORT, CONTROLLER_PORT) for host in self.hosts.values()]
        self.settings = local_cluster(DATA, addresses, overrides=settings)
        self.worlds: dict[int, World] = {}
        self.nodes: dict[int, Node] = {}  # those that live, frozen ones too
        self._entropy = SeededEntropy(Random(f"cut/{seed}"))  # noqa: S311  # a simulation is to be guessed
        self._lives = dict.fromkeys(self.hosts, 0)
        self._starts: dict[int, asyncio.Task[None]] = {}
        for number, host in self.hosts.items():
            self.worlds[number] = simulated_world(loop, f"{host}/{seed}")
            self.disk(number).make_directory(DATA)
            self.disk(number).sync_all()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{BROKER_PORT}" for host in self.hosts.values())

    def disk(self, number: int) -> MemoryDisk:
        disk = self.worlds[number].disk
        assert isinstance(disk, MemoryDisk)
        return disk

    def clock(self, number: int) -> SimulatedClock:
        clock = self.worlds[number].clock
        assert isinstance(clock, SimulatedClock)
        return clock

    async def start_all(self) -> None:
        """The first node founds the cluster, the others join it."""
        await self.start(1, is_founder=True)
        await asyncio.gather(*(self.start(number) for number in self.hosts if number != 1))

    async def start(self, number: int, *, is_founder: bool = False) -> None:
        await self.begin(number, is_founder=is_founder)

    def begin(self, number: int, *, is_founder: bool = False) -> asyncio.Task[None]:
        """Start a node; the task is done when it serves clients. It never is if the node is killed before."""
        assert number not in self.nodes, "it lives"
        self._lives[number] += 1
        given = dict(self.settings[number])
        if is_founder:
            given["barnabas.new.cluster"] = "true"
        node = Node(self.worlds[number], BrokerSettings.of(given))
        self.nodes[number] = node
        name = f"start:{self.hosts[number]}:{self._lives[number]}"
        start = self._starts[number] = self.loop.start_on(self.hosts[number], node.start(), name=name)
        return start

    def is_serving(self, number: int) -> bool:
        """It lives, and its start is over."""
        return number in self.nodes and self._starts[number].done()

    async def stop(self, number: int) -> None:
        """As SIGTERM does it to a node that serves."""
        assert self.is_serving(number)
        node = self.nodes.pop(number)
        await self.loop.start_on(self.hosts[number], node.stop())

    def kill(self, number: int, *, loses_power: bool = False) -> None:
        """The process dies where it stands; with the power goes what its disk had not yet on the device."""
        del self.nodes[number]
        self.network.kill(self.hosts[number])
        if loses_power:
            self.disk(number).crash(self._entropy)
        else:
            self.disk(number).kill()

    def lose_disk(self, number: int) -> None:
        """The process dies with its disk; the next life begins with an empty one."""
        self.kill(number)
        self.disk(number).remove_tree(DATA)
        self.disk(number).make_directory(DATA)
        self.disk(number).sync_all()

    def pause(self, number: int) -> None:
        self.network.pause(self.hosts[number])

    def resume(self, number: int) -> None:
        self.network.resume(self.hosts[number])

    def cut_off(self, number: int, *, one_way: bool = False) -> None:
        """From the other nodes; clients still reach it."""
        for other, host in self.hosts.items():
            if other != number:
                self.network.cut(self.hosts[number], host, one_way=one_way)

    def slow(self, number: int, other: int, *, delay_ms: int, one_way: bool = False) -> None:
        self.network.slow(self.hosts[number], self.hosts[other], delay_ms=delay_ms, one_way=one_way)

    def heal(self) -> None:
        self.network.heal_all()

    async def stop_all(self) -> None:
        """All at once and without a last word: what matters has been looked at."""
        for number in sorted(self.nodes):
            self.resume(number)
            self.kill(number)
