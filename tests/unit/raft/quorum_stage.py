"""Three drivers over the wire's bytes, in virtual time. Shared by the tests of drivers among others."""

from __future__ import annotations

import asyncio

from driver_stage import CLUSTER, Log, voter

from barnabas.model.ids import METADATA_TOPIC
from barnabas.raft.driver import PeerGone, RaftDriver
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, VoterSet
from barnabas.testing.loop import SimulatedLoop
from barnabas.testing.world import simulated_world
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages import request_of, response_of
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.world.timers import Timers

VIRTUAL_SECONDS_MAX = 60.0
QUICK = RaftSettings(
    auto_join_enable=False,
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

    async def send(self, node_id: int, request: Message, *, timeout_ms: int) -> Message:
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
        self.log_type = Log

    async def start(self, number: int, *, is_first: bool = True, settings: RaftSettings = QUICK) -> RaftDriver:
        self.logs[number] = self.log_type()
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
