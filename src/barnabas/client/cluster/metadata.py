"""The cluster as a client sees it: brokers, topics, partitions and their leaders, at one moment.

Immutable; ``cluster.py`` replaces the whole picture when an answer brings a newer one. Nothing here asks anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas.model import errors
from barnabas.model.errors import WireError, error_of
from barnabas.model.ids import NO_BROKER, NO_LEADER_EPOCH, ZERO_UUID, TopicPartition, Uuid
from barnabas.wire.messages.metadata import MetadataResponse


class Broker(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None = None


class PartitionMetadata(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    error: WireError


class TopicMetadata(NamedTuple):
    name: str
    id: Uuid
    is_internal: bool
    partitions: tuple[PartitionMetadata, ...]  # in the order of their indexes
    error: WireError

    @property
    def is_usable(self) -> bool:
        return self.error is errors.NONE and bool(self.partitions)

    @property
    def led_partitions(self) -> tuple[int, ...]:
        return tuple(partition.partition for partition in self.partitions if partition.leader != NO_BROKER)


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    controller_id: int = NO_BROKER
    cluster_id: str | None = None

    def updated(self, response: MetadataResponse) -> ClusterMetadata:
        """This picture with what an answer says; topics that it does not speak of stay."""
        brokers = {b.node_id: Broker(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        topics = dict(self.topics)
        for entry in response.topics:
            if entry.name is not None:
                topics[entry.name] = _newer(topics.get(entry.name), _topic(entry))
        return ClusterMetadata(brokers, topics, response.controller_id, response.cluster_id)

    def led_by(self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Broker]) -> ClusterMetadata:
        """This picture with (leader, leader epoch) of some partitions, as far as that is newer and the leader is known.

        It is what a broker names when it no longer leads (KIP-951); ``nodes`` are the brokers that it names with them.
        """
        brokers = {**self.brokers, **{node.id: node for node in nodes}}
        topics = dict(self.topics)
        for place, (leader, epoch) in leaders.items():
            known = self.partition(place)
            if known is None or leader not in brokers or epoch <= known.leader_epoch:
                continue
            partitions = list(topics[place.topic].partitions)
            partitions[place.partition] = known._replace(leader=leader, leader_epoch=epoch, error=errors.NONE)
            topics[place.topic] = topics[place.topic]._replace(partitions=tuple(partitions))
        return self if topics == self.topics else replace(self, brokers=brokers, topics=topics)

    def leader_epoch(self, place: TopicPartition) -> int:
        known = self.partition(place)
        return NO_LEADER_EPOCH if known is None else known.leader_epoch

    def partition(self, place: TopicPartition) -> PartitionMetadata | None:
        topic = self.topics.get(place.topic)
        if topic is None or not 0 <= place.partition < len(topic.partitions):
            return None
        return topic.partitions[place.partition]

    def without(self, topic: str) -> ClusterMetadata:
        return replace(self, topics={name: entry for name, entry in self.topics.items() if name != topic})

    def topic_name(self, topic_id: Uuid) -> str | None:
        return next((topic.name for topic in self.topics.values() if topic.id == topic_id), None)


def _topic(entry: MetadataResponse.MetadataResponseTopic) -> TopicMetadata:
    assert entry.name is not None
    partitions = sorted(
        PartitionMetadata(
            part.partition_index,
            part.leader_id,
            part.leader_epoch,
            tuple(part.replica_nodes),
            tuple(part.isr_nodes),
            tuple(part.offline_replicas),
            error_of(part.error_code),
        )
        for part in entry.partitions
    )
    return TopicMetadata(
        entry.name, Uuid(entry.topic_id), entry.is_internal, tuple(partitions), error_of(entry.error_code)
    )


def _newer(known: TopicMetadata | None, told: TopicMetadata) -> TopicMetadata:
    """A broker that lags behind may tell of an older leader; the leader epoch gives it away (KIP-320)."""
    if known is None or known.id == ZERO_UUID or known.id != told.id:
        return told
    epochs = {partition.partition: partition for partition in known.partitions}
    partitions = tuple(
        epochs[part.partition]
        if part.partition in epochs and 0 <= part.leader_epoch < epochs[part.partition].leader_epoch
        else part
        for part in told.partitions
    )
    return told._replace(partitions=partitions)
