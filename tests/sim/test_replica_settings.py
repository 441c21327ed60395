"""What the settings of replicas change, shown by a cluster in virtual time: what followers ask for, and who leads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from waiting import until_async

from barnabas.replication.fetcher import Fetcher
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.transport.versions import agree
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest

T = TypeVar("T")
VIRTUAL_SECONDS_MAX = 900.0


def run(story: Callable[[SimulatedCluster], Coroutine[Any, Any, T]], settings: dict[str, str]) -> T:
    async def whole() -> T:
        cluster = SimulatedCluster(7, brokers=3, settings=settings)
        try:
            await cluster.start_all()
            await until_async(lambda: all(len(node.services.raft.voters) == 3 for node in cluster.nodes.values()))
            await create("t")
            return await story(cluster)
        finally:
            await cluster.stop_all()

    return simulate(whole, time_s_max=VIRTUAL_SECONDS_MAX)


async def create(name: str) -> None:
    channel = await Channel.connect("node1", 9092, client_id="test")
    ranges = await agree(channel)
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=3)
    answer = await channel.send(
        CreateTopicsRequest(topics=[topic], timeout_ms=20_000), ranges.highest_common(CreateTopicsRequest)
    )
    assert answer.topics[0].error_code == 0, answer
    channel.close()


def leader(cluster: SimulatedCluster, *, seen_by: int) -> int:
    found: int = cluster.nodes[seen_by].services.image.topics.by_name["t"].partitions[0].leader
    return found


def test_followers_ask_for_as_much_and_wait_as_long_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """replica.fetch.min.bytes, replica.fetch.response.max.bytes, replica.socket.timeout.ms"""
    asked: list[tuple[int, int, int]] = []
    send = Fetcher._send

    async def noted(self: Fetcher, request: Any) -> Any:
        if isinstance(request, FetchRequest):
            asked.append((request.min_bytes, request.max_bytes, self._home.settings.timeout_ms))
        return await send(self, request)

    monkeypatch.setattr(Fetcher, "_send", noted)
    settings = {
        "replica.fetch.min.bytes": "77",
        "replica.fetch.response.max.bytes": "123456",
        "replica.socket.timeout.ms": "9876",
    }

    async def story(_: SimulatedCluster) -> None:
        await until_async(lambda: len(asked) > 3)

    run(story, settings)
    assert set(asked) == {(77, 123456, 9876)}


@pytest.mark.parametrize(("is_on", "interval_s"), [(True, 20), (True, 90), (False, 20)])
def test_partitions_go_back_to_the_first_of_their_replicas(is_on: bool, interval_s: int) -> None:
    """auto.leader.rebalance.enable, leader.imbalance.check.interval.seconds"""
    settings = {
        "auto.leader.rebalance.enable": str(is_on).lower(),
        "leader.imbalance.check.interval.seconds": str(interval_s),
    }

    async def story(cluster: SimulatedCluster) -> float | None:
        first = leader(cluster, seen_by=1)
        other = next(number for number in cluster.nodes if number != first)
        await cluster.stop(first)
        await until_async(lambda: leader(cluster, seen_by=other) != first)
        await cluster.start(first)
        try:
            return await until_async(lambda: leader(cluster, seen_by=other) == first, seconds_max=150)
        except AssertionError:
            return None

    took = run(story, settings)
    if not is_on:
        assert took is None
    else:
        assert took is not None
        assert took <= interval_s + 30
