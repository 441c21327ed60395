"""The group coordinator as the handlers see it: questions about groups, answered by the shards that keep them.

Finds the shard of a group, asks several shards where a request names several groups, and tells the shards what changes
in the cluster. What is decided is decided in ``coordinator``; the runtime makes it durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from barnabas.broker.lag.group_lag import GroupLags
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.consumer.protocol import ConsumerProtocol
from barnabas.coordinator.consumer.settings import ConsumerGroupSettings
from barnabas.coordinator.consumer.step import KnownTopics
from barnabas.coordinator.groups.protocol import Protocols
from barnabas.coordinator.groups.requests import GroupRequest, TopicsDeleted
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.partitioning import partition_of
from barnabas.coordinator.runtime.runtime import CoordinatorRuntime
from barnabas.coordinator.share.protocol import ShareProtocol
from barnabas.coordinator.share.settings import ShareGroupSettings
from barnabas.metadata.configs_image import ConfigResource, ResourceType
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import OFFSETS_TOPIC, Uuid
from barnabas.replication.replicas import Replicas
from barnabas.transport.links import Links
from barnabas.world.timers import Timers
from barnabas.world.world import World


class Groups:
    def __init__(
        self,
        *,
        replicas: Replicas,
        links: Links,
        world: World,
        timers: Timers,
        settings: Callable[[], BrokerSettings],
    ) -> None:
        self._replicas = replicas
        self._entropy = world.entropy
        self._settings = settings
        self._topics = KnownTopics()
        self.tally = GroupTally(world.clock.monotonic_ns)
        self.runtime = CoordinatorRuntime(
            topic=OFFSETS_TOPIC,
            replicas=replicas,
            world=world,
            timers=timers,
            make_shard=lambda _: GroupShard(lambda: settings().groups, self._make_protocols, tally=self.tally),
        )
        self.lags = GroupLags(self.runtime, replicas=replicas, links=links, clock=world.clock, timers=timers)
        self._forget_images = replicas.on_image_in_force(self._on_image)

    def _make_protocols(self, shard: GroupShard) -> Protocols:
        classic = ClassicProtocol(shard)
        return Protocols(
            classic,
            [
                ConsumerProtocol(shard, classic, self._consumer_settings_of, self._topics),
                ShareProtocol(shard, self.share_settings_of, self._topics),
            ],
        )

    async def stop(self) -> None:
        self._forget_images()
        await self.lags.stop()
        await self.runtime.stop()

    # --- asking ---------------------------------------------------------------------------------------------------

    async def ask(self, group_id: str, request: Any) -> Any:
        """The answer of the shard that keeps the group; ApiError if it is not here, or not ready."""
        return await self.runtime.ask(self.shard_of(group_id), request)

    async def ask_all(self, request: Any) -> list[Any]:
        """The answers of all shards here, in order; ApiError while one of them is being loaded."""
        if self.runtime.loading:
            raise ApiError(errors.COORDINATOR_LOAD_IN_PROGRESS)
        return [await self.runtime.ask(index, request) for index in self.runtime.active]

    def shard_of(self, group_id: str) -> int:
        topic = self._replicas.image.topics.by_name.get(OFFSETS_TOPIC)
        if topic is None:
            raise ApiError(errors.NOT_COORDINATOR)
        return partition_of(group_id, len(topic.partitions))

    def new_member_id(self, name: str) -> str:
        """An id that nobody can guess, which begins with the client's or the instance's name."""
        text = self._entropy.uuid().hex()
        return f"{name}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def topic_ids(self, names: Iterable[str]) -> dict[str, Uuid]:
        topics = self._replicas.image.topics.by_name
        return {name: topics[name].id for name in names if name in topics}

    def _consumer_settings_of(self, group_id: str) -> ConsumerGroupSettings:
        """What is set for one group goes before what is set for all."""
        own = self._replicas.image.configs.of(ConfigResource(ResourceType.GROUP, group_id))
        return self._settings().consumer_groups.for_group(own)

    def share_settings_of(self, group_id: str) -> ShareGroupSettings:
        """The settings of share groups with the configuration of one group."""
        own = self._replicas.image.configs.of(ConfigResource(ResourceType.GROUP, group_id))
        return self._settings().share_groups.for_group(own)

    # --- news -----------------------------------------------------------------------------------------------------

    def _on_image(self, changes: MetadataChanges, image: ClusterImage) -> None:
        if changes.created_topics or changes.deleted_topics or changes.changed_partitions:
            self._topics.update(image.topics, version=image.offset, has_new=bool(changes.created_topics))
        deleted = frozenset(topic.name for topic in changes.deleted_topics)
        if deleted:
            self.runtime.post_all(TopicsDeleted(deleted))


__all__ = ["GroupRequest", "Groups"]
