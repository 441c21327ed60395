"""What becomes of partitions when a broker, or one of its directories, comes or goes: their ISR and their leaders.

The broker's own registration is changed elsewhere (``registrations``, ``heartbeats``). Everything that changes a
partition starts from ``PartitionChanges``, which knows the topic's settings and who may lead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from barnabas.metadata.config_schema import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE, ConfigSchema
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.leadership import Election
from barnabas.metadata.partition_change import PartitionChange
from barnabas.metadata.partition_image import PartitionImage, TopicIdPartition
from barnabas.metadata.records import PartitionChangeRecord
from barnabas.model.ids import Uuid


class PartitionChanges:
    """Makes changes of partitions that exist, with no targets yet; looks each topic's settings up once."""

    def __init__(
        self, image: ClusterImage, schema: ConfigSchema, *, is_alive: Callable[[int], bool] | None = None
    ) -> None:
        """``is_alive`` overrides what the picture says of brokers."""
        self._image = image
        self._schema = schema
        self._is_alive = image.is_active if is_alive is None else is_alive
        self._rules: dict[Uuid, tuple[int, Election]] = {}

    def of(self, key: TopicIdPartition) -> PartitionChange:
        image = self._image
        partition = image.topics.partition(key)
        min_isr, election = self._rules_of(key.topic_id)
        return PartitionChange(
            key=key,
            partition=partition,
            is_acceptable=_acceptable(image, partition, self._is_alive),
            default_directory=image.default_directory,
            min_isr=min_isr,
            has_elr=image.has_elr,
            election=election,
        )

    def _rules_of(self, topic_id: Uuid) -> tuple[int, Election]:
        rules = self._rules.get(topic_id)
        if rules is None:
            topic = self._image.topics.by_id[topic_id]
            min_isr: int = self._schema.topic_value(self._image.configs, topic.name, MIN_INSYNC_REPLICAS)
            allows_unclean = allows_unclean_election(self._image, self._schema, topic.name)
            rules = self._rules[topic_id] = (
                min(min_isr, len(topic.partitions[0].replicas)),
                Election.UNCLEAN if allows_unclean else Election.ONLINE,
            )
        return rules


def change_of(image: ClusterImage, schema: ConfigSchema, key: TopicIdPartition) -> PartitionChange:
    return PartitionChanges(image, schema).of(key)


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

    changes = PartitionChanges(image, schema, is_alive=is_alive)
    for key in image.topics.index.of_broker(broker_id) if keys is None else keys:
        change = changes.of(key)
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

    changes = PartitionChanges(image, schema, is_alive=is_alive)
    for key in sorted(image.topics.index.leaderless):
        if broker_id in image.topics.partition(key).replicas:
            record = changes.of(key).record()
            if record is not None:
                yield record
