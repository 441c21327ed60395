"""Asks the cluster for the topics of an application, and creates its internal ones."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.spark.connector.link import Link, link
from barnabas.streams.errors import TopologyError
from barnabas.streams.host.plan import Plan
from barnabas.streams.topology.node import Topology
from barnabas.streams.topology.operators import Sink

__all__ = ["create_internal_topics", "partitions_of"]


def partitions_of(topology: Topology, client: Mapping[str, str]) -> dict[str, int]:
    """The number of partitions of the topics that an application reads, and of those that it writes and that exist.

    Raises TopologyError if a topic that is written with a partitioner of the user does not exist.
    """
    names = {*topology.source_topics, *topology.sink_topics}
    cluster = link(ConsumerSettings, client).cluster
    run = link(ConsumerSettings, client).run
    patterns = topology.source_patterns
    found = run(cluster.retrying(cluster.all_topics))
    is_read = {
        each.name: each
        for each in found
        if each.name in names or any(pattern.fullmatch(each.name) for pattern in patterns if not each.is_internal)
    }
    missing = [topic for topic in _custom_partitioned(topology) if topic not in is_read]
    if missing:
        raise TopologyError(f"these topics are written with a partitioner and do not exist: {', '.join(missing)}")
    return {name: len(each.partitions) for name, each in is_read.items()}


def create_internal_topics(topology: Topology, plan: Plan, client: Mapping[str, str]) -> None:
    """Create the changelog topics and those repartition topics that are topics of the cluster, if they are missing."""
    connection = link(ConsumerSettings, client)
    for store, spec in topology.stores.items():
        if spec.is_named and store not in topology.global_stores:
            number = next(each.number for each in topology.sub_topologies if store in each.store_names)
            count = sum(place.number == number for place in plan.tasks)
            configs = {"cleanup.policy": "compact"}
            connection.run(_create(connection, NewTopic(topology.changelog(store), count, configs=configs)))
    for topic in plan.looped:
        connection.run(_create(connection, NewTopic(topology.decorate(topic), plan.partitions[topic])))


def _custom_partitioned(topology: Topology) -> list[str]:
    """Topics that are written with a partitioner of the user, which needs their number of partitions."""
    sinks = [node.operator for node in topology.nodes.values() if isinstance(node.operator, Sink)]
    return [sink.topic for sink in sinks if sink.partitioner is not None and sink.topic and not sink.is_internal]


async def _create(connection: Link, topic: NewTopic) -> None:
    try:
        await Admin(cluster=connection.cluster).create_topic(topic)
    except ApiError as error:
        if error.error is not errors.TOPIC_ALREADY_EXISTS:
            raise
    await connection.cluster.topic(topic.name)
