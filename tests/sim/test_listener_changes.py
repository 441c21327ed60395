"""A broker of several gets a listener while it runs: all others hear of it, and nothing else changes. Virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waiting import until_async

from barnabas.metadata.brokers_image import BrokerImage
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import SimulatedCluster
from barnabas.transport.channel import Channel
from barnabas.transport.versions import agree
from barnabas.wire.message import Message
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest

VIRTUAL_SECONDS_MAX = 600.0
ADDED_PORT = 9099
BROKER = 4


async def ask(number: int, request: Message, *, port: int = 9092) -> Any:
    channel = await Channel.connect(f"node{number}", port, client_id="test")
    ranges = await agree(channel)
    answer = await channel.send(request, ranges.highest_common(type(request)))
    channel.close()
    return answer


async def alter(number: int, settings: Mapping[str, str]) -> None:
    request = IncrementalAlterConfigsRequest
    configs = [request.AlterableConfig(name=name, value=value) for name, value in settings.items()]
    resource = request.AlterConfigsResource(resource_type=BROKER, resource_name=str(number), configs=configs)
    (row,) = (await ask(number, request(resources=[resource]))).responses
    assert row.error_code == 0, row


def as_seen(cluster: SimulatedCluster, number: int) -> list[BrokerImage]:
    """One broker, as each of them has it."""
    return [node.services.image.brokers[number] for node in cluster.nodes.values()]


def has_listener(seen: BrokerImage, name: str) -> bool:
    return seen.end_point(name) is not None


def test_all_brokers_hear_of_a_listener_that_one_of_them_is_given() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(7)
        await cluster.start_all()
        try:
            number = next(each for each, node in cluster.nodes.items() if not node.services.controller.is_active)
            settings = cluster.nodes[number].settings
            before = as_seen(cluster, number)[0]
            protocols = ",".join(settings.value("listener.security.protocol.map"))
            await alter(
                number,
                {
                    "listeners": ",".join([*settings.listeners, f"ADDED://node{number}:{ADDED_PORT}"]),
                    "listener.security.protocol.map": f"{protocols},ADDED:PLAINTEXT,CONTROLLER:PLAINTEXT",
                },
            )
            await until_async(lambda: all(has_listener(seen, "ADDED") for seen in as_seen(cluster, number)))
            for seen in as_seen(cluster, number):
                assert (seen.epoch, seen.incarnation_id, seen.is_fenced) == (before.epoch, before.incarnation_id, False)
                assert seen.directories == before.directories
            answer = await ask(number, MetadataRequest(topics=[]), port=ADDED_PORT)
            assert [node.node_id for node in answer.brokers] == [number]
            answer = await ask(number, MetadataRequest(topics=[]))
            assert len(answer.brokers) == len(cluster.nodes)

            await cluster.stop(number)
            await cluster.start(number)
            await until_async(lambda: all(has_listener(seen, "ADDED") for seen in as_seen(cluster, number)))
            answer = await ask(number, MetadataRequest(topics=[]), port=ADDED_PORT)
            assert [node.node_id for node in answer.brokers] == [number]
        finally:
            await cluster.stop_all()

    simulate(story, time_s_max=VIRTUAL_SECONDS_MAX)
