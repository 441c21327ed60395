"""Applies batches of records to a picture of the cluster and remembers what they touched.

The cost of a batch is the cost of what it changes. Nothing is compared: the changes that brokers act upon are collected
while records are applied. The controller's driver and whoever loads the log call it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.metadata import records as r
from barnabas.metadata.brokers_image import BrokersBuilder
from barnabas.metadata.configs_image import ConfigResource, ConfigsBuilder, ResourceType
from barnabas.metadata.features_image import with_level
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.partition_image import TopicIdPartition
from barnabas.metadata.security_image import SecurityImage
from barnabas.metadata.topics_image import TopicImage, TopicsBuilder
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChanges:
    """What differs between two pictures, as keys to look up in them, each once, in the order of the log."""

    created_topics: tuple[Uuid, ...] = ()
    deleted_topics: tuple[TopicImage, ...] = ()  # as they were
    changed_partitions: tuple[TopicIdPartition, ...] = ()  # those of created topics too, those of deleted ones not
    changed_configs: tuple[ConfigResource, ...] = ()
    changed_brokers: tuple[int, ...] = ()
    has_new_features: bool = False
    has_new_quotas: bool = False
    has_new_security: bool = False

    def __add__(self, later: MetadataChanges) -> MetadataChanges:
        """The changes of two batches, one after the other, as one."""
        gone = {topic.id for topic in later.deleted_topics}
        short_lived = gone.intersection(self.created_topics)
        return MetadataChanges(
            created_topics=tuple(
                topic_id for topic_id in (*self.created_topics, *later.created_topics) if topic_id not in gone
            ),
            deleted_topics=(
                *self.deleted_topics,
                *(topic for topic in later.deleted_topics if topic.id not in short_lived),
            ),
            changed_partitions=_merged(
                [key for key in self.changed_partitions if key.topic_id not in gone], later.changed_partitions
            ),
            changed_configs=_merged(self.changed_configs, later.changed_configs),
            changed_brokers=_merged(self.changed_brokers, later.changed_brokers),
            has_new_features=self.has_new_features or later.has_new_features,
            has_new_quotas=self.has_new_quotas or later.has_new_quotas,
            has_new_security=self.has_new_security or later.has_new_security,
        )


NO_CHANGES: Final = MetadataChanges()


def _merged(first: Any, second: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*first, *second)))


class ImageBuilder:
    """One use: apply records in order, then ``build``; ``changes`` tells what they touched."""

    def __init__(self, image: ClusterImage) -> None:
        self._start(image)
        self._offset = image.offset
        self._transaction_base = image.transaction_base
        self._earlier = NO_CHANGES

    def _start(self, image: ClusterImage) -> None:
        self._image = image
        self._topics: TopicsBuilder | None = None
        self._configs: ConfigsBuilder | None = None
        self._brokers: BrokersBuilder | None = None
        self._features = image.features
        self._client_quotas = image.client_quotas
        self._security = image.security
        self._next_producer_id = image.next_producer_id

    def apply(self, record: Message, offset: int) -> None:
        """Malformed if the record contradicts the picture: then the log is damaged or from the future."""
        handler = _HANDLERS.get(type(record))
        if handler is None:
            raise Malformed(f"{type(record).__name__} is no metadata record")
        self._offset = offset
        handler(self, record)

    def build(self, *, epoch: int) -> ClusterImage:
        image = self._image
        brokers, controllers = (image.brokers, image.controllers) if self._brokers is None else self._brokers.build()
        return ClusterImage(
            offset=self._offset,
            epoch=epoch,
            features=self._features,
            brokers=brokers,
            controllers=controllers,
            topics=image.topics if self._topics is None else self._topics.build(),
            configs=image.configs if self._configs is None else self._configs.build(),
            client_quotas=self._client_quotas,
            next_producer_id=self._next_producer_id,
            security=self._security,
            transaction_base=self._transaction_base,
        )

    @property
    def changes(self) -> MetadataChanges:
        topics, configs, brokers = self._topics, self._configs, self._brokers
        return self._earlier + MetadataChanges(
            created_topics=tuple(topics.created) if topics else (),
            deleted_topics=tuple(topics.deleted.values()) if topics else (),
            changed_partitions=tuple(topics.changed) if topics else (),
            changed_configs=tuple(configs.changed) if configs else (),
            changed_brokers=tuple(brokers.changed) if brokers else (),
            has_new_features=self._features is not self._image.features,
            has_new_quotas=self._client_quotas is not self._image.client_quotas,
            has_new_security=self._security is not self._image.security,
        )

    def _in_topics(self) -> TopicsBuilder:
        if self._topics is None:
            self._topics = TopicsBuilder(self._image.topics)
        return self._topics

    def _in_configs(self) -> ConfigsBuilder:
        if self._configs is None:
            self._configs = ConfigsBuilder(self._image.configs)
        return self._configs

    def _in_brokers(self) -> BrokersBuilder:
        if self._brokers is None:
            self._brokers = BrokersBuilder(self._image.brokers, self._image.controllers)
        return self._brokers

    def _register_broker(self, record: r.RegisterBrokerRecord) -> None:
        self._in_brokers().register(record, self._offset)

    def _remove_topic(self, record: r.RemoveTopicRecord) -> None:
        name = self._in_topics().remove_topic(record)
        if self._configs is not None or ConfigResource(ResourceType.TOPIC, name) in self._image.configs.by_resource:
            self._in_configs().remove(ConfigResource(ResourceType.TOPIC, name))

    def _clear_elr(self, record: r.ClearElrRecord) -> None:
        self._in_topics().clear_elr(record, iter(self._image.topics.index.with_elr))

    def _set_feature(self, record: r.FeatureLevelRecord) -> None:
        self._features = with_level(self._features, record)

    def _set_quota(self, record: r.ClientQuotaRecord) -> None:
        self._client_quotas = self._client_quotas.with_quota(record)

    def _set_producer_ids(self, record: r.ProducerIdsRecord) -> None:
        self._next_producer_id = record.next_producer_id

    def _secure(self, security: SecurityImage) -> None:
        self._security = security

    def _begin(self, record: r.BeginTransactionRecord) -> None:
        if self._transaction_base is not None:
            raise Malformed("a metadata transaction begins within another")
        self._earlier = self.changes
        self._start(self.build(epoch=self._image.epoch))
        self._transaction_base = self._image

    def _end(self, record: r.EndTransactionRecord) -> None:
        if self._transaction_base is None:
            raise Malformed("a metadata transaction ends that never began")
        self._transaction_base = None

    def _abort(self, record: r.AbortTransactionRecord) -> None:
        if self._transaction_base is None:
            raise Malformed("a metadata transaction is aborted that never began")
        self._start(self._transaction_base)
        self._transaction_base = None

    def _ignore(self, record: Message) -> None:
        """It says nothing about the cluster of today."""


_HANDLERS: Final[Mapping[type[Message], Callable[[ImageBuilder, Any], Any]]] = {
    r.RegisterBrokerRecord: ImageBuilder._register_broker,
    r.UnregisterBrokerRecord: lambda builder, record: builder._in_brokers().unregister(record),
    r.TopicRecord: lambda builder, record: builder._in_topics().add_topic(record),
    r.PartitionRecord: lambda builder, record: builder._in_topics().add_partition(record),
    r.ConfigRecord: lambda builder, record: builder._in_configs().set(record),
    r.PartitionChangeRecord: lambda builder, record: builder._in_topics().change_partition(record),
    r.FenceBrokerRecord: lambda builder, record: builder._in_brokers().fence(record),
    r.UnfenceBrokerRecord: lambda builder, record: builder._in_brokers().unfence(record),
    r.RemoveTopicRecord: ImageBuilder._remove_topic,
    r.DelegationTokenRecord: lambda builder, record: builder._secure(builder._security.with_token(record)),
    r.UserScramCredentialRecord: lambda builder, record: builder._secure(builder._security.with_scram(record)),
    r.FeatureLevelRecord: ImageBuilder._set_feature,
    r.ClientQuotaRecord: ImageBuilder._set_quota,
    r.ProducerIdsRecord: ImageBuilder._set_producer_ids,
    r.BrokerRegistrationChangeRecord: lambda builder, record: builder._in_brokers().change(record),
    r.AccessControlEntryRecord: lambda builder, record: builder._secure(builder._security.with_acl(record)),
    r.RemoveAccessControlEntryRecord: lambda builder, record: builder._secure(builder._security.without_acl(record)),
    r.NoOpRecord: ImageBuilder._ignore,
    r.ZkMigrationStateRecord: ImageBuilder._ignore,
    r.RemoveUserScramCredentialRecord: lambda builder, record: builder._secure(builder._security.without_scram(record)),
    r.BeginTransactionRecord: ImageBuilder._begin,
    r.EndTransactionRecord: ImageBuilder._end,
    r.AbortTransactionRecord: ImageBuilder._abort,
    r.RemoveDelegationTokenRecord: lambda builder, record: builder._secure(builder._security.without_token(record)),
    r.RegisterControllerRecord: lambda builder, record: builder._in_brokers().register_controller(record),
    r.ClearElrRecord: ImageBuilder._clear_elr,
}
