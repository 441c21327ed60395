"""Who looks after a group is asked for once, kept with the cluster, and forgotten for all who asked."""

from __future__ import annotations

import asyncio

from barnabas.client.cluster import coordinators
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.client.cluster.metadata import ClusterMetadata
from barnabas.client.settings.client import Settings
from barnabas.testing import Broker
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse


class CountingCluster(Cluster):
    """A cluster that knows how often it was asked for a coordinator."""

    asked = 0

    async def call_any(self, message, response, *, timeout_ms=None):  # type: ignore[no-untyped-def]
        self.asked += response is FindCoordinatorResponse
        return await super().call_any(message, response, timeout_ms=timeout_ms)


def test_a_coordinator_is_asked_for_once_and_again_when_it_is_no_longer_that() -> None:
    async def run(servers: str) -> None:
        async with CountingCluster(Settings.of({"bootstrap.servers": servers})) as cluster:
            first = Coordinator(cluster, KeyKind.GROUP, "readers")
            broker = await first.find()
            second = Coordinator(cluster, KeyKind.GROUP, "readers")
            assert (await second.find(), cluster.asked) == (broker, 1)
            await Coordinator(cluster, KeyKind.TRANSACTION, "readers").find()
            assert cluster.asked == 2, "the same key of another kind is another one"
            second.forget()
            assert first.broker is None
            assert (await first.find(), cluster.asked) == (broker, 3)
            cluster.metadata = ClusterMetadata()
            assert first.broker is None, "a broker that has left is nobody's coordinator"

    with Broker() as broker:
        asyncio.run(run(broker.bootstrap_servers))


def test_only_so_many_coordinators_are_kept() -> None:
    async def run(servers: str) -> None:
        async with Cluster(Settings.of({"bootstrap.servers": servers})) as cluster:
            cluster.coordinators = {(0, f"group-{number}"): 1 for number in range(coordinators.COORDINATORS_MAX)}
            await Coordinator(cluster, KeyKind.GROUP, "one-more").find()
            assert len(cluster.coordinators) == coordinators.COORDINATORS_MAX
            assert (0, "group-0") not in cluster.coordinators

    with Broker() as broker:
        asyncio.run(run(broker.bootstrap_servers))
