"""Tells the controller in which directory each replica of this broker lies, where it does not know or is wrong.

A broker with several directories chooses by itself where a new replica goes; the controller must know, because when a
directory fails it takes the leadership of just its partitions away. Whoever follows the metadata calls ``check``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from barnabas.model.errors import BarnabasError, error_of
from barnabas.model.ids import Uuid
from barnabas.observe.log import logger
from barnabas.replication.isr_changes import AskController
from barnabas.replication.partition import Partition
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from barnabas.world.timers import Timers

log = logger("directories")

REPLICAS_PER_REQUEST_MAX: Final = 2000  # as in Kafka
PAUSE_MS: Final = 500  # before the controller is asked again
REQUEST_TIMEOUT_MS: Final = 30_000

DirectoryOf: TypeAlias = Callable[[Partition], Uuid | None]  # None if its directory is offline


class DirectoryAssignments:
    def __init__(
        self,
        *,
        broker_id: int,
        broker_epoch: Callable[[], int],
        directory_of: DirectoryOf,
        ask: AskController,
        timers: Timers,
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._directory_of = directory_of
        self._ask = ask
        self._timers = timers
        self._waiting: dict[tuple[Uuid, int], Partition] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False

    def check(self, partition: Partition) -> None:
        """Report a replica that is not where the metadata says."""
        if self._is_right(partition) or self._is_stopped:
            return
        self._waiting[partition.topic_id, partition.id.partition] = partition
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="directory-assignments")

    def _is_right(self, partition: Partition) -> bool:
        directory = self._directory_of(partition)
        return partition.is_gone or directory is None or partition.image.directory_of(self._broker_id) == directory

    async def stop(self) -> None:
        self._is_stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            await asyncio.sleep(0)
            while self._waiting:
                keys = list(self._waiting)[:REPLICAS_PER_REQUEST_MAX]
                batch = {key: self._waiting.pop(key) for key in keys}
                wanted = {key: partition for key, partition in batch.items() if not self._is_right(partition)}
                if wanted and not await self._report(wanted):
                    self._waiting = {**wanted, **self._waiting}
                    await self._timers.sleep(PAUSE_MS)
        finally:
            self._task = None

    async def _report(self, wanted: dict[tuple[Uuid, int], Partition]) -> bool:
        """Whether the controller has heard it. What it refuses one by one is not said again until it changes."""
        try:
            response = await self._ask(self._request(wanted), REQUEST_TIMEOUT_MS)
        except (BarnabasError, TimeoutError) as error:
            log.warning("the controller does not answer", replicas=len(wanted), reason=error)
            return False
        assert isinstance(response, AssignReplicasToDirsResponse)
        if response.error_code:
            log.warning("directories are not taken", error=error_of(response.error_code).name)
            return False
        for directory in response.directories:
            for topic in directory.topics:
                for row in topic.partitions:
                    if row.error_code:
                        name, partition = error_of(row.error_code).name, wanted[topic.topic_id, row.partition_index].id
                        log.info("directory is not taken", partition=partition, error=name)
        return True

    def _request(self, wanted: dict[tuple[Uuid, int], Partition]) -> AssignReplicasToDirsRequest:
        directories: dict[Uuid, dict[Uuid, AssignReplicasToDirsRequest.TopicData]] = {}
        for (topic_id, index), partition in wanted.items():
            directory = self._directory_of(partition)
            assert directory is not None, "what is offline has been left out"
            topics = directories.setdefault(directory, {})
            topic = topics.setdefault(topic_id, AssignReplicasToDirsRequest.TopicData(topic_id=topic_id))
            topic.partitions.append(AssignReplicasToDirsRequest.PartitionData(partition_index=index))
        return AssignReplicasToDirsRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                AssignReplicasToDirsRequest.DirectoryData(id=directory, topics=list(topics.values()))
                for directory, topics in directories.items()
            ],
        )
