"""Three drivers over the wire's bytes, in virtual time: a machine that is busy deposes no leader here.

The driver on a real disk is ``test_driver``'s; a disk in memory keeps the same promises.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from driver_stage import CLUSTER, Log, voter

from barnabas.model.ids import METADATA_TOPIC
from barnabas.raft.driver import NotLeader, PeerGone, RaftDriver
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, VoterSet
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages import request_of, response_of
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.world.timers import Timers

VIRTUAL_SECONDS_MAX = 60.0
QUICK = RaftSettings(
    election_timeout_ms=60,
    fetch_timeout_ms=150,
    election_backoff_max_ms=40,
    request_timeout_ms=150,
    fetch_wait_ms_max=30,
)


class Wires:
    """Carries requests between drivers as bytes of the newest version."""

    def __init__(self) -> None:
        self.drivers: dict[int, RaftDriver] = {}
        self.silent: set[int] = set()

    def of(self, source: int) -> Peer:
        return Peer(self, source)


class Peer:
    def __init__(self, wires: Wires, source: int) -> None:
        self.wires = wires
        self.source = source
        self.ports: dict[int, int] = {}

    def learn(self, node_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        self.ports[node_id] = endpoints[0].port

    async def send(self, node_id: int, request: Message) -> Message:
        target = self.ports[node_id] - 9090
        if target in self.wires.silent or self.source in self.wires.silent or target not in self.wires.drivers:
            raise PeerGone("silent")
        assert request.api_key is not None
        version = max(request.versions)
        if isinstance(request, ApiVersionsRequest):
            feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            return ApiVersionsResponse(supported_features=[feature])
        arrived = decode(request_of(request.api_key), version, encode(request, version))
        answer = await self.wires.drivers[target].handle(arrived)
        await asyncio.sleep(0.001)
        if target in self.wires.silent:
            raise PeerGone("silent")
        return decode(response_of(request.api_key), version, encode(answer, version))


class Cluster:
    def __init__(self, count: int = 3) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        self.world = simulated_world(loop, "quorum")
        self.timers = Timers(self.world.clock)
        self.wires = Wires()
        self.voters = VoterSet.of(*(voter(number) for number in range(1, count + 1)))
        self.logs: dict[int, Log] = {}

    async def start(self, number: int, *, is_first: bool = True, settings: RaftSettings = QUICK) -> RaftDriver:
        self.logs[number] = Log()
        driver = RaftDriver(
            self.world,
            self.timers,
            f"/data/{number}/{METADATA_TOPIC}-0",
            local=voter(number),
            cluster_id=CLUSTER,
            settings=settings,
            listener=self.logs[number],
            peers=self.wires.of(number),
            initial_voters=self.voters if is_first else None,
            bootstrap_servers=[voter(1).endpoints[0], voter(2).endpoints[0]],
        )
        await driver.start()
        self.wires.drivers[number] = driver
        return driver

    async def leader(self) -> RaftDriver:
        async with asyncio.timeout(10):
            while True:
                for number, driver in self.wires.drivers.items():
                    is_reachable = number not in self.wires.silent
                    if is_reachable and driver.is_leader and self.logs[number].leaders[-1:] == [driver.leader]:
                        return driver
                await self.timers.sleep(5)

    async def stop(self) -> None:
        for driver in self.wires.drivers.values():
            await driver.stop()


def test_three_voters_elect_replicate_and_fail_over() -> None:
    async def scene() -> None:
        cluster = Cluster()
        for number in (1, 2, 3):
            await cluster.start(number)
        leader = await cluster.leader()
        await leader.wait_committed(leader.propose([b"a"], epoch=leader.leader.epoch))
        first = leader.leader
        cluster.wires.silent.add(first.leader_id)
        successor = await cluster.leader()
        assert successor.leader.epoch > first.epoch
        await successor.wait_committed(successor.propose([b"b"], epoch=successor.leader.epoch))
        cluster.wires.silent.clear()
        for log in cluster.logs.values():
            await log.until(lambda log=log: log.records == [b"a", b"b"])
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)


def test_an_isolated_leader_commits_nothing_and_what_it_wrote_is_cut() -> None:
    async def scene() -> None:
        cluster = Cluster()
        for number in (1, 2, 3):
            await cluster.start(number)
        old = await cluster.leader()
        cluster.wires.silent.add(old.leader.leader_id)
        offset = old.propose([b"lost"], epoch=old.leader.epoch)
        with pytest.raises(NotLeader):
            await old.wait_committed(offset)
        new = await cluster.leader()
        await new.wait_committed(new.propose([b"kept"], epoch=new.leader.epoch))
        cluster.wires.silent.clear()
        for log in cluster.logs.values():
            await log.until(lambda log=log: log.records == [b"kept"])
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)


def test_a_late_observer_downloads_the_snapshot_and_becomes_a_voter() -> None:
    async def scene() -> None:
        cluster = Cluster(count=2)
        for number in (1, 2):
            await cluster.start(number)
        leader = await cluster.leader()
        epoch = leader.leader.epoch
        offset = leader.propose([b"a"] * 10, epoch=epoch)
        await leader.wait_committed(offset)
        await leader.create_snapshot(offset + 1, epoch, 1, (b"s" * 1000 for _ in range(3000)))
        await leader.wait_committed(leader.propose([b"after"], epoch=epoch))
        await cluster.start(3, is_first=False, settings=replace(QUICK, auto_join_enable=True))
        log = cluster.logs[3]
        await log.until(lambda: log.records[-1:] == [b"after"])
        assert log.snapshots == [OffsetAndEpoch(offset + 1, epoch)]
        assert len(log.records) == 3001
        async with asyncio.timeout(10):
            while not leader.voters.is_voter(voter(3).key):
                await cluster.timers.sleep(5)
        await leader.wait_committed(leader.propose([b"three"], epoch=epoch))
        await cluster.stop()

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)
