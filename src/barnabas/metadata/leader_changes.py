"""What becomes of partitions when a broker, or one of its directories, comes or goes: their ISR and their leaders.

The broker's own registration is changed elsewhere (``registrations``, ``heartbeats``). Everything that changes a
partition starts from ``change_of``, which knows the topic's settings and who may lead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from barnabas.metadata.config_schema import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE, ConfigSchema
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.leadership import Election
from barnabas.metadata.partition_change import PartitionChange
from barnabas.metadata.partition_image import PartitionImage, TopicIdPartition
from barnabas.metadata.records import PartitionChangeRecord


def change_of(
    image: ClusterImage,
    schema: ConfigSchema,
    key: TopicIdPartition,
    *,
    is_alive: Callable[[int], bool] | None = None,
) -> PartitionChange:
    """A change of a partition that exists, with no targets yet; ``is_alive`` overrides what the picture says."""
    topic = image.topics.by_id[key.topic_id]
    partition = topic.partitions[key.partition]
    min_isr: int = schema.topic_value(image.configs, topic.name, MIN_INSYNC_REPLICAS)
    return PartitionChange(
        key=key,
        partition=partition,
        is_acceptable=_acceptable(image, partition, image.is_active if is_alive is None else is_alive),
        default_directory=image.default_directory,
        min_isr=min(min_isr, len(topic.partitions[0].replicas)),
        has_elr=image.has_elr,
        election=Election.UNCLEAN if allows_unclean_election(image, schema, topic.name) else Election.ONLINE,
    )


def allows_unclean_election(image: ClusterImage, schema: ConfigSchema, topic: str) -> bool:
    allowed: bool = schema.topic_value(image.configs, topic, UNCLEAN_LEADER_ELECTION_ENABLE)
    return allowed


def _acceptable(
    image: ClusterImage, partition: PartitionImage, is_alive: Callable[[int], bool]
) -> Callable[[int], bool]:
    def is_acceptable(broker_id: int) -> bool:
        if not is_alive(broker_id):
            return False
        broker = image.brokers.get(broker_id)
        return broker is not None and broker.has_online(partition.directory_of(broker_id))

    return is_acceptable


def without_broker(
    image: ClusterImage,
    schema: ConfigSchema,
    broker_id: int,
    keys: Iterable[TopicIdPartition] | None = None,
    *,
    is_crash: bool = False,
) -> Iterator[PartitionChangeRecord]:
    """The broker leaves the ISR of its partitions (or of ``keys``) and leads none of them.

    After a crash it is no eligible leader either: what it acknowledged may not have reached its disk.
    """

    def is_alive(candidate: int) -> bool:
        return candidate != broker_id and image.is_active(candidate)

    for key in image.topics.index.of_broker(broker_id) if keys is None else keys:
        change = change_of(image, schema, key, is_alive=is_alive)
        change.isr = tuple(replica for replica in change.partition.isr if replica != broker_id)
        if is_crash:
            change.unclean_shutdowns = frozenset((broker_id,))
        record = change.record()
        if record is not None:
            yield record


def with_broker(image: ClusterImage, schema: ConfigSchema, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """The broker, which the picture still holds to be fenced, leads what has no leader and may be led by it."""

    def is_alive(candidate: int) -> bool:
        return candidate == broker_id or image.is_active(candidate)

    for key in sorted(image.topics.index.leaderless):
        if broker_id in image.topics.partition(key).replicas:
            record = change_of(image, schema, key, is_alive=is_alive).record()
            if record is not None:
                yield record
