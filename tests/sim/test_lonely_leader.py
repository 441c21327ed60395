"""A leader that is cut off from all others, and a producer that reaches it: it is told, and has to look elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.model import errors
from barnabas.replication.partition import SILENCE_MS_MIN
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import BROKER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.records import encode_batch

VIRTUAL_SECONDS_MAX = 3600.0
TIMEOUT_MS = 3000
NAMED_VERSION_MAX = 12


def produce_request(*partitions: int) -> ProduceRequest:
    data = [
        ProduceRequest.PartitionProduceData(index=index, records=bytes(encode_batch([(0, None, b"v", ())])))
        for index in partitions
    ]
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=data)
    return ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic])


@pytest.mark.parametrize("partitions", [(0,), (0, 1)], ids=["one batch", "several"])
def test_a_producer_is_told_that_another_may_lead_and_is_hung_up_on(partitions: tuple[int, ...]) -> None:
    async def main() -> None:
        cluster = SimulatedCluster(1, settings={"min.insync.replicas": "2"})
        await cluster.start_all()
        channel = await Channel.connect("node1", BROKER_PORT, client_id="test")
        topic = CreateTopicsRequest.CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=[1, 2, 3])
                for index in range(2)
            ],
        )
        (row,) = (await channel.send(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7)).topics
        assert row.error_code == 0, row.error_message
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
        while (await channel.send(asked, NAMED_VERSION_MAX)).topics[0].error_code:
            await asyncio.sleep(0.1)
        assert await errors_of(channel, *partitions) == {errors.NONE.code}
        cluster.cut_off(1)
        await asyncio.sleep(SILENCE_MS_MIN / 1000)
        assert await errors_of(channel, *partitions) == {errors.NOT_LEADER_OR_FOLLOWER.code}
        await asyncio.wait_for(channel.closed, 1)
        cluster.heal()
        await cluster.stop_all()

    simulate(main, seed=1, time_s_max=VIRTUAL_SECONDS_MAX)


async def errors_of(channel: Channel, *partitions: int) -> set[int]:
    answer = await channel.send(produce_request(*partitions), NAMED_VERSION_MAX)
    assert isinstance(answer, ProduceResponse)
    return {row.error_code for topic in answer.responses for row in topic.partition_responses}
