"""All partitions that this broker holds a replica of, kept as the metadata says.

Pictures of the cluster arrive in order; one task makes, changes and removes partitions and only then lets the
handlers see the new picture. So whoever sees a topic in the metadata can also write to it here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, Protocol

from barnabas.metadata.configs_image import ResourceType
from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.partition_image import PartitionImage, TopicIdPartition
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.observe.log import logger
from barnabas.replication.partition import NOBODY, Cluster, Partition
from barnabas.replication.throttle import Throttle
from barnabas.storage.doomed import DELETE_SUFFIX, STRAY_SUFFIX
from barnabas.storage.log import PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.store import LogStore
from barnabas.world.disk import DiskFailure, DiskFull
from barnabas.world.tasks import Tasks

log = logger("replicas")

PARTITIONS_PER_TURN_MAX: Final = 2  # partitions made or removed before the loop serves others
CHANGES_PER_TURN_MAX: Final = 64  # partitions that got another leader or ISR, before the loop serves others
FOLLOWING: Final = "replicas"  # name of the task that applies metadata images


class Following(Protocol):
    """Who fetches the partitions that others lead: :class:`barnabas.replication.fetchers.Fetchers`."""

    def update(self, partition: Partition) -> None: ...

    def drop(self, partition: Partition) -> None: ...


SettingsOf = Callable[[ClusterImage, str], TopicSettings]
OnLeadership = Callable[[Partition, bool], None]
OnImage = Callable[[MetadataChanges, ClusterImage], None]


class Replicas:
    def __init__(self, *, broker_id: int, store: LogStore, settings_of: SettingsOf) -> None:
        self.broker_id = broker_id
        self.image: ClusterImage = EMPTY  # in force: its partitions are here
        self.latest: ClusterImage = EMPTY  # in force, or being put in force
        self._store = store
        self._settings_of = settings_of
        self.by_name: dict[tuple[str, int], Partition] = {}
        self.by_id: dict[tuple[Uuid, int], Partition] = {}
        self._offline: set[tuple[Uuid, int]] = set()  # replicas whose log or log directory is offline
        self._unmade: dict[TopicIdPartition, None] = {}  # offline replicas that could not be created on a full disk
        self._news: deque[tuple[MetadataChanges, ClusterImage]] = deque()
        self._tasks = Tasks(on_failure=self._on_failed)
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._leadership_callbacks: list[OnLeadership] = []
        self._image_callbacks: list[OnImage] = []
        self._cluster: Cluster = NOBODY
        self._following: Following | None = None
        self.leader_throttle = Throttle()  # of what throttled followers were sent
        # Called when the metadata cannot be followed any further: the node must not go on as if nothing had happened.
        self.on_failure: Callable[[BaseException], None] = lambda error: None

    def connect(self, cluster: Cluster, following: Following) -> None:
        """Partitions have replicas on other brokers from now on. Before the first picture, or never."""
        assert not self.by_name
        self._cluster = cluster
        self._following = following

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    # --- finding --------------------------------------------------------------------------------------------------

    def leader(self, topic: str, index: int) -> Partition:
        """The partition, if this broker leads it; otherwise the error that tells the client what to do."""
        partition = self.by_name.get((topic, index))
        if partition is not None and partition.is_leader:
            return partition
        known = self.image.topics.by_name.get(topic)
        if known is None or not 0 <= index < len(known.partitions):
            raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        if partition is None and (known.id, index) in self._offline:
            raise ApiError(errors.KAFKA_STORAGE_ERROR)
        raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)

    def leader_by_id(self, topic_id: Uuid, index: int) -> Partition:
        partition = self.by_id.get((topic_id, index))
        if partition is not None and partition.is_leader:
            return partition
        known = self.image.topics.by_id.get(topic_id)
        if known is None:
            raise ApiError(errors.UNKNOWN_TOPIC_ID)
        return self.leader(known.name, index)

    def leader_in(self, topic: str, index: int, leader_epoch: int) -> Partition:
        """As ``leader``, for one who names an epoch, or −1: what is wrong with that comes first."""
        partition = self.by_name.get((topic, index))
        if partition is not None:
            partition.check_epoch(leader_epoch)
        return self.leader(topic, index)

    def readable(self, topic: str, index: int) -> Partition:
        """The partition, if this broker has a replica of it, be it a follower's (KIP-392)."""
        partition = self.by_name.get((topic, index))
        return self.leader(topic, index) if partition is None else partition

    def readable_by_id(self, topic_id: Uuid, index: int) -> Partition:
        partition = self.by_id.get((topic_id, index))
        return self.leader_by_id(topic_id, index) if partition is None else partition

    def state_of(self, topic: str, topic_id: Uuid, index: int) -> PartitionImage | None:
        """What the metadata in force says of a partition, wherever it is."""
        topics = self.image.topics
        known = topics.by_name.get(topic) if topic_id == ZERO_UUID else topics.by_id.get(topic_id)
        return known.partitions[index] if known is not None and 0 <= index < len(known.partitions) else None

    def hosted(self, topic: str, topic_id: Uuid, index: int) -> Partition | None:
        return self.by_id.get((topic_id, index)) or self.by_name.get((topic, index))

    # --- telling others -------------------------------------------------------------------------------------------

    def on_leadership(self, callback: OnLeadership) -> Callable[[], None]:
        """Call back whenever this broker begins or ends to lead a partition; the answer takes the callback off."""
        self._leadership_callbacks.append(callback)
        for partition in self:
            if partition.is_leader:
                callback(partition, True)
        return lambda: self._leadership_callbacks.remove(callback)

    def on_image_in_force(self, callback: OnImage) -> Callable[[], None]:
        """Call back with every picture once its partitions are here; the answer takes the callback off."""
        self._image_callbacks.append(callback)
        return lambda: self._image_callbacks.remove(callback)

    def _tell_leadership(self, partition: Partition, was_leader: bool) -> None:
        if partition.is_leader != was_leader:
            for callback in tuple(self._leadership_callbacks):
                callback(partition, partition.is_leader)

    def _leave(self, partition: Partition) -> None:
        was_leader = partition.is_leader
        if self._following is not None:
            self._following.drop(partition)
        partition.leave()
        self._tell_leadership(partition, was_leader)

    # --- following the metadata -----------------------------------------------------------------------------------

    def on_image(self, changes: MetadataChanges, image: ClusterImage) -> None:
        """A new picture of the cluster; it is in force once its partitions are there."""
        self._news.append((changes, image))
        self._tasks.once(FOLLOWING, self._follow)

    async def caught_up(self, offset: int) -> None:
        """Wait until the picture in force includes the metadata log up to ``offset``."""
        if self.image.offset < offset:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((offset, future))
            await future

    async def stop(self) -> None:
        await self._tasks.done()
        for partition in self:
            self._leave(partition)

    async def _follow(self) -> None:
        while self._news:
            changes, image = self._news.popleft()
            self.latest = image
            await self._apply(changes, image)
            self.image = image
            for callback in tuple(self._image_callbacks):
                callback(changes, image)
            self._wake(image.offset)

    def _on_failed(self, error: Exception) -> None:
        """The metadata cannot be followed: end every wait for an image that never comes, and tell the node."""
        log.error("metadata cannot be followed", reason=repr(error))
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
        self.on_failure(error)

    def _wake(self, offset: int) -> None:
        reached = [future for wanted, future in self._waiting if wanted <= offset]
        self._waiting = [(wanted, future) for wanted, future in self._waiting if wanted > offset]
        for future in reached:
            if not future.done():
                future.set_result(None)

    async def _apply(self, changes: MetadataChanges, image: ClusterImage) -> None:
        turns = count(1)
        for topic in changes.deleted_topics:
            for index in range(len(topic.partitions)):
                await self._remove(topic.name, topic.id, index)
                if next(turns) % PARTITIONS_PER_TURN_MAX == 0:
                    await asyncio.sleep(0)
        for number, key in enumerate(changes.changed_partitions, 1):
            if number % CHANGES_PER_TURN_MAX == 0:
                await asyncio.sleep(0)
            topic = image.topics.by_id[key.topic_id]
            state = topic.partitions[key.partition]
            partition = self.by_id.get((topic.id, key.partition))
            if self.broker_id not in state.replicas:
                await self._remove(topic.name, topic.id, key.partition)
            elif partition is not None:
                self._change(partition, state)
            else:
                await self._add(image, topic.name, topic.id, key.partition, state)
                if next(turns) % PARTITIONS_PER_TURN_MAX == 0:
                    await asyncio.sleep(0)
        self._apply_settings(changes, image)

    def _apply_settings(self, changes: MetadataChanges, image: ClusterImage) -> None:
        if not changes.changed_configs:
            return
        names = {resource.name for resource in changes.changed_configs if resource.type == ResourceType.TOPIC}
        is_everyone = any(resource.type == ResourceType.BROKER for resource in changes.changed_configs)
        for partition in self.by_name.values():
            if is_everyone or partition.id.topic in names:
                partition.log.settings = self._settings_of(image, partition.id.topic)
                partition.apply_settings()

    def _change(self, partition: Partition, state: PartitionImage) -> None:
        was_leader = partition.is_leader
        is_leader = state.leader == self.broker_id
        if self._following is not None and is_leader:
            self._following.drop(partition)  # before it leads: nothing may be appended from elsewhere any more
        partition.apply(state)
        if self._following is not None and not is_leader:
            self._following.update(partition)
        self._tell_leadership(partition, was_leader)

    async def _add(self, image: ClusterImage, name: str, topic_id: Uuid, index: int, state: PartitionImage) -> None:
        key = TopicPartition(name, index)
        try:
            stored = self._store.get(key)
            if stored is not None and stored.topic_id != topic_id:
                await self.give_up(stored)
                stored = None
            settings = self._settings_of(image, name)
            if stored is None:
                self._check_new(key, topic_id)
                stored = await self._store.create(key, topic_id, settings)
            stored.settings = settings
        except DiskFailure as failure:
            log.error("partition has no disk", partition=key, reason=failure)
            self._offline.add((topic_id, index))
            if isinstance(failure, DiskFull):
                self._unmade[TopicIdPartition(topic_id, index)] = None
            return
        self._offline.discard((topic_id, index))
        partition = Partition(
            broker_id=self.broker_id, log=stored, topic_id=topic_id, image=state, cluster=self._cluster
        )
        self.by_name[name, index] = partition
        self.by_id[topic_id, index] = partition
        if self._following is not None and not partition.is_leader:
            self._following.update(partition)
        self._tell_leadership(partition, False)

    async def give_up(self, stored: PartitionLog) -> None:
        """A log that is not of any partition this broker has: deleted, given to others, or nobody knows whose.

        A topic of its name may have been deleted and made again while this broker was away. One that lost its
        partition.metadata in a power cut may be any topic's, so it is not served; as in Kafka its records are kept.
        """
        if stored.topic_id is None and stored.end_offset > stored.log_start_offset:
            path = await self._store.set_aside(stored.partition)
            log.error("nobody knows whose log this is; it is not served", partition=stored.partition, kept_in=path)
        else:
            log.warning("log is of no partition here and is removed", partition=stored.partition, id=stored.topic_id)
            await self._store.delete(stored.partition)

    def retry(self) -> None:
        """Make the replicas that found no room on the disk; there may be some by now."""
        if self._unmade and not self._tasks.is_running(FOLLOWING):
            known = self.latest.topics.by_id
            wanted, self._unmade = self._unmade, {}
            again = tuple(key for key in wanted if key.topic_id in known)
            self.on_image(MetadataChanges(changed_partitions=again), self.latest)

    def _check_new(self, key: TopicPartition, topic_id: Uuid) -> None:
        """Raise DiskFailure if the replica may have records in a log or directory that is offline.

        It must not start empty. Before the first image is in force any offline directory may have the records.
        """
        fault = self._store.faults.get(key)
        if fault is not None and fault.topic_id in (topic_id, None):
            raise DiskFailure(fault.path, "the log is offline")
        if fault is not None:
            self._store.remove_offline(key, STRAY_SUFFIX)  # a log of an older topic of the same name
        if not self._store.offline:
            return
        before = self.state_of(key.topic, topic_id, key.partition)
        if self.image is EMPTY or (before is not None and self.broker_id in before.replicas):
            raise next(iter(self._store.offline.values()))

    async def _remove(self, name: str, topic_id: Uuid, index: int) -> None:
        self._offline.discard((topic_id, index))
        self._unmade.pop(TopicIdPartition(topic_id, index), None)
        partition = self.by_id.pop((topic_id, index), None)
        if partition is None:
            self._store.remove_offline(TopicPartition(name, index), DELETE_SUFFIX)
            return
        if self.by_name.get((name, index)) is partition:
            del self.by_name[name, index]
        self._leave(partition)
        try:
            await self._store.delete(partition.id)
        except DiskFailure as failure:
            log.error("partition could not be removed", partition=partition.id, reason=failure)

    def is_offline(self, key: TopicPartition) -> bool:
        """Whether this broker has a replica of the partition, on a disk that has failed."""
        known = self.image.topics.by_name.get(key.topic)
        return known is not None and (known.id, key.partition) in self._offline

    def has_fault(self, key: TopicPartition) -> bool:
        """Whether the log of the partition is offline while its directory is online."""
        fault = self._store.faults.get(key)
        return fault is not None and fault.is_offline

    def directory_failed(self, directory: str) -> None:
        """Take the partitions offline whose log directory has failed."""
        for partition in list(self):
            if partition.log.directory.startswith(directory + "/"):
                self._take_offline(partition)

    def log_failed(self, key: TopicPartition) -> Partition | None:
        """Take one partition offline because of its log; returns it, if it was online."""
        partition = self.by_name.get(key)
        if partition is not None:
            self._take_offline(partition)
        return partition

    def _take_offline(self, partition: Partition) -> None:
        index = partition.id.partition
        del self.by_name[partition.id]
        self.by_id.pop((partition.topic_id, index), None)
        self._offline.add((partition.topic_id, index))
        self._leave(partition)
