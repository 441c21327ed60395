"""Links between nodes, against a real listener: dialling, moving, silence and the end."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.testing import Broker
from barnabas.transport.channel import PeerGone, Unreachable
from barnabas.transport.links import Links
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


def links() -> Links:
    return Links(client_id="test", chance=lambda below: 0)


def address(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return host, int(port)


def test_requests_of_all_who_wait_share_one_connection() -> None:
    async def run() -> None:
        mine = links()
        mine.learn(7, *address(broker))
        answers = await asyncio.gather(*(mine.send(7, DescribeClusterRequest()) for _ in range(20)))
        assert {type(answer) for answer in answers} == {DescribeClusterResponse}
        assert sum(listener.connection_count for listener in broker.node.listeners) == 1
        await mine.send(7, DescribeClusterRequest(), lane="another")
        assert sum(listener.connection_count for listener in broker.node.listeners) == 2
        await mine.close()

    with Broker() as broker:
        asyncio.run(run())


def test_an_unknown_node_cannot_be_reached() -> None:
    async def run() -> None:
        mine = links()
        with pytest.raises(PeerGone, match="no way to node 3"):
            await mine.send(3, DescribeClusterRequest())
        mine.learn(3, "127.0.0.1", 1)
        with pytest.raises(Unreachable):
            await mine.send(3, DescribeClusterRequest())
        mine.forget(3)
        assert 3 not in mine
        await mine.close()

    asyncio.run(run())


def test_a_node_that_moves_is_found_where_it_is() -> None:
    async def run() -> None:
        mine = links()
        mine.learn(1, *address(first))
        await mine.send(1, DescribeClusterRequest())
        mine.learn(1, *address(second))
        answer = await mine.send(1, DescribeClusterRequest())
        assert isinstance(answer, DescribeClusterResponse)
        assert answer.cluster_id == second.node.cluster_id
        await mine.close()

    with Broker() as first, Broker() as second:
        asyncio.run(run())


def test_a_node_that_is_silent_costs_the_time_out_and_no_more() -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        mine = links()
        mine.learn(1, *server.sockets[0].getsockname())
        with pytest.raises(TimeoutError):
            await mine.send(1, DescribeClusterRequest(), timeout_ms=50)
        await mine.close()
        with pytest.raises(PeerGone):
            await mine.send(1, DescribeClusterRequest())
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize(("host", "port"), [("x" * 64 + ".example", 9092), ("127.0.0.1", 2**20), ("a\0b", 1)])
def test_an_address_that_is_none_cannot_be_reached(host: str, port: int) -> None:
    async def run() -> None:
        mine = links()
        mine.learn(1, host, port)
        with pytest.raises(Unreachable):
            await mine.send(1, DescribeClusterRequest())
        await mine.close()

    asyncio.run(run())
