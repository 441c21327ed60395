"""Three drivers of the quorum on the simulated loop, with disks that lose what was not synced when the power fails.

The drivers are those of production, from the fsync to the bytes of the wire; only the peers are joined in memory. What
was acknowledged must be in every log in the end, and no two listeners may ever be told different things.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from random import Random

from barnabas.model.ids import METADATA_TOPIC, Uuid
from barnabas.raft.driver import LeaderAndEpoch, NotLeader, PeerGone, RaftDriver
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import SeededEntropy, simulated_world
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages import request_of, response_of
from barnabas.world.memory import MemoryDisk
from barnabas.world.timers import Timers

SEEDS = int(os.environ.get("BARNABAS_SIM_SEEDS", "200")) // 10
ROUNDS = 60
DIRECTORY = f"/data/{METADATA_TOPIC}-0"
SETTINGS = RaftSettings(
    auto_join_enable=False,
    election_timeout_ms=150,
    fetch_timeout_ms=300,
    election_backoff_max_ms=150,
    request_timeout_ms=300,
)


def voter(number: int) -> Voter:
    key = ReplicaKey(number, Uuid(bytes([number]) * 16))
    return Voter(key, (Endpoint("CONTROLLER", f"host{number}", 9093),))


VOTERS = VoterSet.of(voter(1), voter(2), voter(3))


class Cluster:
    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.loop = loop
        self.chance = Random(f"cluster/{seed}")
        self.worlds = {number: simulated_world(loop, f"{seed}/{number}") for number in (1, 2, 3)}
        for world in self.worlds.values():
            assert isinstance(world.disk, MemoryDisk)
            world.disk.sync_delay_ms = self.chance.choice((0, 1, 8))
        self.drivers: dict[int, RaftDriver] = {}
        self.listeners: dict[int, Judge] = {}
        self.silent: set[int] = set()
        self.committed: dict[int, bytes] = {}

    async def start(self, number: int) -> None:
        world = self.worlds[number]
        self.listeners[number] = Judge(self)
        driver = RaftDriver(
            world,
            Timers(world.clock),
            DIRECTORY,
            local=voter(number),
            cluster_id="simulated",
            settings=SETTINGS,
            listener=self.listeners[number],
            peers=Peer(self, number),
            initial_voters=VOTERS,
        )
        await self.loop.start_on(f"host{number}", driver.start())
        self.drivers[number] = driver

    def cut_power(self, number: int) -> None:
        del self.drivers[number]
        self.loop.network.kill(f"host{number}")
        disk = self.worlds[number].disk
        assert isinstance(disk, MemoryDisk)
        disk.crash(SeededEntropy(self.chance))

    def leader(self) -> RaftDriver | None:
        leaders = [driver for number, driver in sorted(self.drivers.items()) if driver.is_leader]
        return max(leaders, key=lambda driver: driver.leader.epoch, default=None)


class Judge:
    """A listener that compares what it is told with what the others were told."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.next_offset = 0

    def on_commit(self, base_offset: int, epoch: int, append_time_ms: int, records: list[bytes]) -> None:
        assert base_offset >= self.next_offset, "in order and once"
        for offset, record in enumerate(records, base_offset):
            assert self.cluster.committed.setdefault(offset, record) == record
        self.next_offset = base_offset + len(records)

    def on_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterator[bytes]) -> None:
        expected = [value for offset, value in sorted(self.cluster.committed.items()) if offset < snapshot_id.offset]
        assert list(records) == expected
        self.next_offset = snapshot_id.offset

    def on_leader(self, leader: LeaderAndEpoch) -> None:
        pass


class Peer:
    def __init__(self, cluster: Cluster, source: int) -> None:
        self.cluster = cluster
        self.source = source

    def learn(self, node_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        pass

    async def send(self, node_id: int, request: Message, *, timeout_ms: int) -> Message:
        cluster, version = self.cluster, max(request.versions)
        await asyncio.sleep(cluster.chance.choice((0.001, 0.002, 0.01)))
        driver = cluster.drivers.get(node_id)
        if driver is None or {node_id, self.source} & cluster.silent:
            raise PeerGone("silent")
        assert request.api_key is not None
        arrived = decode(request_of(request.api_key), version, encode(request, version))
        answer = await asyncio.wait_for(cluster.loop.start_on(f"host{node_id}", driver.handle(arrived)), 1)
        await asyncio.sleep(cluster.chance.choice((0.001, 0.002, 0.01)))
        if {node_id, self.source} & cluster.silent:
            raise PeerGone("silent")
        return decode(response_of(request.api_key), version, encode(answer, version))


async def story(seed: int) -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    cluster = Cluster(loop, seed)
    chance = cluster.chance
    for number in (1, 2, 3):
        await cluster.start(number)
    acknowledged: list[tuple[int, bytes]] = []
    for turn in range(ROUNDS):
        await asyncio.sleep(chance.choice((0.001, 0.01, 0.1, 0.4)))
        leader = cluster.leader()
        if leader is not None:
            value = b"%d" % turn
            try:
                epoch = leader.leader.epoch
                offset = leader.propose([value], epoch=epoch)
                await asyncio.wait_for(leader.wait_committed(offset, epoch=epoch), 0.5)
                acknowledged.append((offset, value))
                if chance.random() < 0.1:
                    records = [value for at, value in sorted(cluster.committed.items()) if at <= offset]
                    await leader.create_snapshot(offset + 1, epoch, 1, iter(records))
            except (NotLeader, TimeoutError):
                pass
        trouble = chance.random()
        if trouble < 0.1 and cluster.drivers:
            cluster.cut_power(chance.choice(sorted(cluster.drivers)))
        elif trouble < 0.2:
            cluster.silent = {chance.choice((1, 2, 3))}
        elif trouble < 0.5:
            cluster.silent = set()
            for number in (1, 2, 3):
                if number not in cluster.drivers:
                    await cluster.start(number)
    cluster.silent = set()
    for number in (1, 2, 3):
        if number not in cluster.drivers:
            await cluster.start(number)
    await asyncio.sleep(5)
    for offset, value in acknowledged:
        assert cluster.committed[offset] == value
    last_offset = max(cluster.committed)
    assert all(listener.next_offset > last_offset for listener in cluster.listeners.values())
    await asyncio.gather(*(driver.stop() for driver in cluster.drivers.values()))
    return len(acknowledged)


def test_what_was_acknowledged_survives_power_cuts_and_partitions() -> None:
    total = 0
    for seed in range(SEEDS):
        try:
            total += simulate(lambda seed=seed: story(seed), seed=seed)
        except Exception as error:
            error.add_note(f"replay: story({seed}) in tests/sim/test_raft_driver.py")
            raise
    assert total > 10 * SEEDS
