"""The share coordinator on this broker: the shards of ``__share_group_state`` that it leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.coordinator.runtime.partitioning import partition_of
from barnabas.coordinator.runtime.runtime import CoordinatorRuntime
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import Prune, StateTopicsDeleted
from barnabas.coordinator.share_state.shard import ShareStateShard
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import SHARE_STATE_TOPIC
from barnabas.observe.log import logger
from barnabas.replication.replicas import Replicas
from barnabas.world.timers import Timers
from barnabas.world.world import World

log = logger("share")


class ShareStateCoordinator:
    def __init__(
        self, *, replicas: Replicas, world: World, timers: Timers, settings: Callable[[], BrokerSettings]
    ) -> None:
        self._replicas = replicas
        self.runtime = CoordinatorRuntime(
            topic=SHARE_STATE_TOPIC,
            replicas=replicas,
            world=world,
            timers=timers,
            make_shard=lambda _: ShareStateShard(lambda: settings().share_state, self._partition_exists),
            perform=self._prune,
        )
        self._forget_images = replicas.on_image_in_force(self._on_image)

    async def stop(self) -> None:
        self._forget_images()
        await self.runtime.stop()

    async def ask(self, key: SharePartitionKey, request: Any) -> Any:
        """The answer of the shard of a share-partition; ApiError if the shard is not here, or not ready."""
        topic = self._replicas.image.topics.by_name.get(SHARE_STATE_TOPIC)
        if topic is None:
            raise ApiError(errors.NOT_COORDINATOR)
        return await self.runtime.ask(partition_of(key.coordinator_key, len(topic.partitions)), request)

    def _partition_exists(self, key: SharePartitionKey) -> bool:
        topic = self._replicas.image.topics.by_id.get(key.topic_id)
        return topic is not None and 0 <= key.partition < len(topic.partitions)

    def _prune(self, index: int, message: Prune) -> None:
        try:
            self._replicas.leader(SHARE_STATE_TOPIC, index).delete_records(message.offset)
        except ApiError as error:
            log.info("share state was not pruned", partition=index, offset=message.offset, reason=error)

    def _on_image(self, changes: MetadataChanges, image: ClusterImage) -> None:
        deleted = frozenset(topic.id for topic in changes.deleted_topics)
        if deleted:
            self.runtime.post_all(StateTopicsDeleted(deleted))
