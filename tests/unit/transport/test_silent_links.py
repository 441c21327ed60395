"""Links to a node on whose connection nothing is answered, as after the loss of a machine or of a firewall's state."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from barnabas.testing.loop import simulate
from barnabas.transport.links import Links
from barnabas.wire.api import ApiKey
from barnabas.wire.frame import decode_request_header, encode_response
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest

VIRTUAL_SECONDS_MAX = 120.0
PORT = 9093
NODE = 2


class SilentNode:
    """Says what it speaks, and never a word again."""

    def __init__(self) -> None:
        self.dialled = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.dialled += 1
        header, _ = decode_request_header(await reader.readexactly(int.from_bytes(await reader.readexactly(4))))
        speaks = ApiVersionsResponse.ApiVersion(api_key=ApiKey.BROKER_HEARTBEAT, min_version=0, max_version=1)
        answer = ApiVersionsResponse(api_keys=[speaks])
        for part in encode_response(answer, header.api_version, correlation_id=header.correlation_id):
            writer.write(part)
        with suppress(ConnectionError):
            await reader.read()
        writer.close()


def test_a_caller_that_gives_up_leaves_no_dead_connection_behind() -> None:
    """A caller's own patience often ends with the request's time: who of the two is first must not matter."""

    async def scene() -> None:
        node = SilentNode()
        server = await asyncio.start_server(node.serve, "127.0.0.1", PORT)
        links = Links(client_id="test", chance=lambda limit: 0)
        links.learn(NODE, "127.0.0.1", PORT)
        for patience_s in (2.0, 0.5):
            dialled = node.dialled
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await links.send(NODE, BrokerHeartbeatRequest(), timeout_ms=2000)
            await asyncio.sleep(3)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await links.send(NODE, BrokerHeartbeatRequest(), timeout_ms=2000)
            assert node.dialled == dialled + 2  # each request found the connection of the one before given up
            await asyncio.sleep(3)
        await links.close()
        server.close()
        await asyncio.sleep(1)  # the other ends hear of it

    simulate(scene, time_s_max=VIRTUAL_SECONDS_MAX)
