"""Reports to the controller in which log directory of this broker each of its replicas is (KIP-858).

The controller needs it to elect other leaders when one of several directories fails. A replica whose log is offline
while its directory is online is reported as lost, with the same effect. ``metadata.replica_directories`` is the
controller's side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from barnabas.broker.controller.link import ControllerLink, raise_for_error
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.partition_image import LOST_DIRECTORY, TopicIdPartition
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.observe.log import logger
from barnabas.replication.partition import Partition
from barnabas.replication.replicas import Replicas
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

log = logger("directories")

PER_REQUEST_MAX: Final = 2000
RETRY_MS: Final = 1000

Request = AssignReplicasToDirsRequest


class DirectoryAssignments:
    def __init__(
        self,
        *,
        replicas: Replicas,
        directory_ids: Callable[[], Mapping[str, Uuid]],
        link: ControllerLink,
        timers: Timers,
        broker_epoch: Callable[[], int],
    ) -> None:
        """``directory_ids`` returns the ids of the online directories, by path."""
        self._replicas = replicas
        self._directory_ids = directory_ids
        self._link = link
        self._timers = timers
        self._broker_epoch = broker_epoch
        self._wanted: dict[TopicIdPartition, None] = {}
        self._tasks = Tasks()
        self._is_stopped = False
        self._forget = replicas.on_image_in_force(self._on_image)

    async def stop(self) -> None:
        self._is_stopped = True
        self._forget()
        await self._tasks.stop()

    def changed(self, partition: Partition) -> None:
        """Report the directory of a replica that was moved, or whose log went offline."""
        self._look(self._replicas.image, [TopicIdPartition(partition.topic_id, partition.id.partition)])

    def _on_image(self, changes: MetadataChanges, image: ClusterImage) -> None:
        self._look(image, changes.changed_partitions)

    def _look(self, image: ClusterImage, keys: Iterable[TopicIdPartition]) -> None:
        self._wanted |= dict.fromkeys(key for key in keys if self._actual(image, key) is not None)
        if self._wanted and not self._is_stopped:
            self._tasks.retry("directories", self._tell, self._timers, retry_ms=RETRY_MS)

    def _actual(self, image: ClusterImage, key: TopicIdPartition) -> Uuid | None:
        """The directory of the replica, if the image has another; LOST_DIRECTORY if the log is offline."""
        partition = self._replicas.by_id.get((key.topic_id, key.partition))
        topic = image.topics.by_id.get(key.topic_id)
        broker_id = self._replicas.broker_id
        if topic is None or broker_id not in topic.partitions[key.partition].replicas:
            return None
        if partition is not None:
            actual = self._directory_ids().get(partition.log.directory.rpartition("/")[0])
        elif self._replicas.has_fault(TopicPartition(topic.name, key.partition)):
            actual = LOST_DIRECTORY
        else:
            return None
        return None if actual == topic.partitions[key.partition].directory_of(broker_id) else actual

    async def _tell(self) -> None:
        while self._wanted:
            # Removed first: a replica that moves again before the response arrives must be reported once more.
            keys = list(self._wanted)[:PER_REQUEST_MAX]
            for key in keys:
                del self._wanted[key]
            is_told = False
            try:
                request = self._request(keys)
                # A replica that the controller refuses has changed meanwhile; the next image brings it here again.
                is_told = not request.directories or await self._is_told(request)
            finally:
                if not is_told:
                    self._wanted |= dict.fromkeys(keys)
            if not is_told:
                await self._timers.sleep(RETRY_MS)

    async def _is_told(self, request: Request) -> bool:
        try:
            raise_for_error(await self._link.ask(request))
        except ApiError as error:
            log.warning("the controller does not know yet where replicas lie", reason=error)
            return False
        return True

    def _request(self, keys: Iterable[TopicIdPartition]) -> Request:
        by_directory: dict[Uuid, dict[Uuid, list[int]]] = {}
        for key in keys:
            actual = self._actual(self._replicas.image, key)
            if actual is not None:
                by_directory.setdefault(actual, {}).setdefault(key.topic_id, []).append(key.partition)
        return Request(
            broker_id=self._replicas.broker_id,
            broker_epoch=self._broker_epoch(),
            directories=list(_directories(by_directory)),
        )


def _directories(by_directory: Mapping[Uuid, Mapping[Uuid, list[int]]]) -> Iterator[Request.DirectoryData]:
    for directory, topics in sorted(by_directory.items()):
        yield Request.DirectoryData(
            id=directory,
            topics=[
                Request.TopicData(
                    topic_id=topic_id,
                    partitions=[Request.PartitionData(partition_index=index) for index in sorted(indexes)],
                )
                for topic_id, indexes in sorted(topics.items())
            ],
        )
