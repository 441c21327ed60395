"""The quorum's way to its other members, over connections."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from barnabas.broker.controller.quorum_peers import SocketPeers
from barnabas.model.ids import METADATA_TOPIC, Uuid
from barnabas.raft.driver import RaftDriver
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import simulated_world
from barnabas.transport.links import Links
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import decode_request_header, encode_response
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.vote import VoteRequest
from barnabas.world.timers import Timers

VIRTUAL_SECONDS_MAX = 120.0
PORT = 9093


def voter(number: int) -> Voter:
    return Voter(ReplicaKey(number, Uuid(bytes([number]) * 16)), (Endpoint("CONTROLLER", "127.0.0.1", PORT),))


def test_a_connection_on_which_nothing_is_answered_is_given_up() -> None:
    """As after the loss of a machine that comes back: the old connection never ends, and a new one would do."""
    dialled = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dialled
        dialled += 1
        header, _ = decode_request_header(await reader.readexactly(int.from_bytes(await reader.readexactly(4))))
        lowest, highest = VoteRequest.versions[0], VoteRequest.versions[-1]
        speaks = ApiVersionsResponse.ApiVersion(api_key=ApiKey.VOTE, min_version=lowest, max_version=highest)
        answer = ApiVersionsResponse(api_keys=[speaks])
        for part in encode_response(answer, header.api_version, correlation_id=header.correlation_id):
            writer.write(part)
        with suppress(ConnectionError):
            await reader.read()  # and never a word again
        writer.close()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        server = await asyncio.start_server(serve, "127.0.0.1", PORT)
        world = simulated_world(loop, "quorum")
        links = Links(client_id="test", chance=lambda limit: 0)
        driver = RaftDriver(
            world,
            Timers(world.clock),
            f"/data/{METADATA_TOPIC}-0",
            local=voter(1),
            cluster_id="cluster",
            settings=RaftSettings(auto_join_enable=False),
            peers=SocketPeers(links, listener_names=("CONTROLLER",)),
            initial_voters=VoterSet.of(voter(1), voter(2)),
        )
        await driver.start()
        await asyncio.sleep(60)
        assert dialled > 5
        await driver.stop()
        await links.close()
        server.close()
        await asyncio.sleep(1)  # the other ends hear of it

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)
