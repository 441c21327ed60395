"""Asks the cluster for the topics of an application, and creates its internal ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.spark.connector.link import Link, link
from barnabas.streams.catalog.task_metrics import metrics_topic
from barnabas.streams.errors import TopologyError
from barnabas.streams.host.plan import Plan
from barnabas.streams.host.state_topic import CONFIGS as STATE_CONFIGS
from barnabas.streams.host.state_topic import PARTITIONS_MAX as STATE_PARTITIONS_MAX
from barnabas.streams.host.state_topic import topic_name as state_topic_name
from barnabas.streams.topology.node import Topology
from barnabas.streams.topology.operators import Sink
from barnabas.streams.topology.stores import StoreSpec

__all__ = ["create_internal_topics", "internal_topics", "partitions_of"]

METRICS_CONFIGS: Final = {"cleanup.policy": "compact", "segment.bytes": str(4 * 1024 * 1024)}
ADDITIONAL_RETENTION_MS: Final = 24 * 3_600_000  # windowstore.changelog.additional.retention.ms of Kafka Streams


def partitions_of(topology: Topology, client: Mapping[str, str]) -> dict[str, int]:
    """The number of partitions of the topics that an application reads, and of those that it writes and that exist.

    Raises TopologyError if a topic that is written with a partitioner of the user does not exist.
    """
    names = {*topology.cluster_topics, *topology.sink_topics}
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


def internal_topics(topology: Topology, plan: Plan) -> list[NewTopic]:
    """The changelog topics, the state topic, and those repartition topics that are topics of the cluster."""
    found = []
    for store, spec in topology.stores.items():
        if spec.is_named and store not in topology.global_stores:
            number = next(each.number for each in topology.sub_topologies if store in each.store_names)
            count = sum(place.number == number for place in plan.tasks)
            found.append(NewTopic(topology.changelog(store), count, configs=_changelog_configs(spec)))
    found += [NewTopic(topology.decorate(topic), plan.partitions[topic]) for topic in sorted(plan.looped)]
    name = state_topic_name(topology.application_id)
    own = (name, metrics_topic(topology.application_id))
    if any(each.name in own for each in found):
        raise TopologyError(f"stores cannot have the names task-state and task-metrics: {' and '.join(own)} are taken")
    count = max(1, min(len(plan.tasks), STATE_PARTITIONS_MAX))
    return [
        *found,
        NewTopic(name, count, configs=STATE_CONFIGS),
        NewTopic(metrics_topic(topology.application_id), 1, configs=METRICS_CONFIGS),
    ]


def create_internal_topics(topology: Topology, plan: Plan, client: Mapping[str, str]) -> int:
    """Create the internal topics that are missing; returns the number of partitions of the state topic."""
    connection = link(ConsumerSettings, client)
    for topic in internal_topics(topology, plan):
        connection.run(_create(connection, topic))
    found = connection.run(connection.cluster.topic(state_topic_name(topology.application_id)))
    return len(found.partitions)


def _changelog_configs(spec: StoreSpec) -> dict[str, str]:
    """Settings of a changelog topic: as Kafka's, windows are deleted and old versions compacted after the retention."""
    kept = str(spec.retention_ms + ADDITIONAL_RETENTION_MS)
    if spec.kind in ("window", "session"):
        return {"cleanup.policy": "compact,delete", "retention.ms": kept}
    return {"cleanup.policy": "compact"} | ({"min.compaction.lag.ms": kept} if spec.kind == "versioned" else {})


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
