"""A leader whose log has lost its files: another replica leads at once, and the other logs of the broker stay."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from barnabas.metadata.partition_image import LOST_DIRECTORY
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

PARTITION = TopicPartition("t", 0)


async def create(cluster: SimulatedCluster) -> None:
    channel = await Channel.connect("node2", BROKER_PORT, client_id="test")
    rows = [
        CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])],
        )
        for name in ("t", "u")
    ]
    request = CreateTopicsRequest(topics=rows, timeout_ms=20_000)
    answer = cast(CreateTopicsResponse, await channel.send(request, 7))
    assert [row.error_code for row in answer.topics] == [0, 0]
    channel.abort()
    await asyncio.sleep(5)


def test_another_replica_leads_and_the_lost_one_comes_back_after_a_restart() -> None:
    async def main() -> None:
        cluster = SimulatedCluster(3)
        await cluster.start_all()
        await create(cluster)
        services = cluster.nodes[1].services
        log = services.store.logs[PARTITION]
        cluster.disk(1).remove_tree(log.directory)
        await services.store.retain_all()
        await asyncio.sleep(5)
        topics = cluster.nodes[2].services.image.topics.by_name
        lost, kept = topics["t"].partitions[0], topics["u"].partitions[0]
        assert lost.directory_of(1) == LOST_DIRECTORY
        assert lost.leader in (2, 3)
        assert set(lost.isr) == {2, 3}
        assert (kept.leader, set(kept.isr)) == (1, {1, 2, 3})
        assert not services.store.offline
        with pytest.raises(ApiError, match=errors.KAFKA_STORAGE_ERROR.name):
            services.replicas.readable(*PARTITION)
        await cluster.stop(1)
        await cluster.start(1)
        await asyncio.sleep(20)
        back = cluster.nodes[2].services.image.topics.by_name["t"].partitions[0]
        assert set(back.isr) == {1, 2, 3}
        assert back.directory_of(1) != LOST_DIRECTORY
        await cluster.stop_all()

    simulate(main, seed=4, time_s_max=3600)
