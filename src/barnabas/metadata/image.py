"""The picture of the cluster at one offset of the metadata log: immutable, and sharing its structure with the next.

It is made from records only, so every node that has read as far has the same one. The nouns are in modules of their
own; the work of applying a batch is in ``image_builder``. Decisions of the controller, the replicas of a broker and
nearly every handler read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from immutables import Map

from barnabas.metadata import brokers_image, features_image
from barnabas.metadata.brokers_image import BrokerImage, ControllerImage
from barnabas.metadata.configs_image import ConfigsImage
from barnabas.metadata.features_image import Levels
from barnabas.metadata.partition_image import UNASSIGNED_DIRECTORY, PartitionImage
from barnabas.metadata.quotas_image import ClientQuotasImage
from barnabas.metadata.records import ProducerIdsRecord
from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.topics_image import TopicImage, TopicsImage
from barnabas.model.ids import NO_BROKER, NO_OFFSET, Uuid
from barnabas.wire.message import Message

__all__ = ["EMPTY", "ClusterImage", "PartitionImage", "TopicImage"]

NO_PRODUCER_IDS: Final = -1  # none was ever handed out


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    offset: int = NO_OFFSET  # of the last record in the picture
    epoch: int = -1  # of the controller that wrote it
    features: Levels = field(default_factory=Map)  # the finalized level of each feature that is on
    brokers: Map[int, BrokerImage] = field(default_factory=Map)
    controllers: Map[int, ControllerImage] = field(default_factory=Map)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    client_quotas: ClientQuotasImage = field(default_factory=ClientQuotasImage)
    next_producer_id: int = NO_PRODUCER_IDS
    security: SecurityImage = field(default_factory=SecurityImage)
    # The picture before an open metadata transaction (KIP-868), which nobody outside the log may see the inside of.
    transaction_base: ClusterImage | None = field(default=None, repr=False)

    @property
    def is_empty(self) -> bool:
        """Nothing was ever written: a cluster always has levels."""
        return not self.features

    @property
    def has_elr(self) -> bool:
        return features_image.has_elr(self.features)

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.by_name.get(name)

    def topic_of_id(self, topic_id: Uuid) -> TopicImage | None:
        return self.topics.by_id.get(topic_id)

    def partition(self, name: str, index: int) -> PartitionImage | None:
        topic = self.topics.by_name.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        return topic.partitions[index]

    def is_active(self, broker_id: int) -> bool:
        """Registered, not fenced and not shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def default_directory(self, broker_id: int) -> Uuid:
        broker = self.brokers.get(broker_id)
        return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory

    def apply(self, record: Message, offset: int) -> ClusterImage:
        """The picture after one more record; use an ImageBuilder for a batch."""
        return self.apply_all((record,), base_offset=offset, epoch=self.epoch)

    def apply_all(self, records: Iterable[Message], *, base_offset: int, epoch: int) -> ClusterImage:
        from barnabas.metadata.image_builder import ImageBuilder

        builder = ImageBuilder(self)
        for offset, record in enumerate(records, base_offset):
            builder.apply(record, offset)
        return builder.build(epoch=epoch)

    def records(self) -> Iterator[Message]:
        """The records of a snapshot, in Kafka's order: applied to EMPTY they give this picture again."""
        assert self.transaction_base is None, "a snapshot is taken outside of transactions"
        yield from features_image.records(self.features)
        yield from brokers_image.records(self.brokers, self.controllers)
        yield from self.topics.records()
        yield from self.configs.records()
        yield from self.client_quotas.records()
        if self.next_producer_id != NO_PRODUCER_IDS:
            yield ProducerIdsRecord(broker_id=NO_BROKER, broker_epoch=-1, next_producer_id=self.next_producer_id)
        yield from self.security.records()


EMPTY: Final = ClusterImage()
