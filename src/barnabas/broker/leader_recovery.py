"""After an election that may have lost records a partition is marked as recovering; its leader takes the mark off.

The controller sets the mark with the election (KIP-966), this broker's logs are whole by the time they lead, so it
answers every such mark with AlterPartition, through the controller's link. The node starts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from barnabas.broker.controller_link import raise_for_error
from barnabas.broker.services import Services
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.partition_image import LeaderRecoveryState, TopicIdPartition
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.wire.messages.alter_partition import AlterPartitionRequest

log = logger("leader_recovery")

PARTITIONS_PER_REQUEST_MAX: Final = 1000


class LeaderRecovery:
    def __init__(self, broker: Services) -> None:
        self._broker = broker
        self._tasks: set[asyncio.Task[None]] = set()
        self._forget = broker.replicas.on_image_in_force(self._on_image)

    async def stop(self) -> None:
        self._forget()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*sorted(self._tasks, key=lambda task: task.get_name()), return_exceptions=True)

    def _on_image(self, changes: MetadataChanges, image: ClusterImage) -> None:
        found = [key for key in changes.changed_partitions if self._is_recovering(image, key)]
        if found:
            task = asyncio.get_running_loop().create_task(self._report(image, found), name="leader-recovery")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _is_recovering(self, image: ClusterImage, key: TopicIdPartition) -> bool:
        state = image.topics.by_id[key.topic_id].partitions[key.partition]
        is_ours = state.leader == self._broker.broker_id
        return is_ours and state.leader_recovery_state == LeaderRecoveryState.RECOVERING

    async def _report(self, image: ClusterImage, keys: Sequence[TopicIdPartition]) -> None:
        """What is refused because the partition has changed meanwhile comes back with the next picture."""
        for start in range(0, len(keys), PARTITIONS_PER_REQUEST_MAX):
            request = self._request(image, keys[start : start + PARTITIONS_PER_REQUEST_MAX])
            try:
                raise_for_error(await self._broker.controller_link.ask(request))
            except ApiError as error:
                log.warning("recovered leaders are not reported", partitions=len(keys), reason=error)
                return

    def _request(self, image: ClusterImage, keys: Sequence[TopicIdPartition]) -> AlterPartitionRequest:
        topics: dict[bytes, AlterPartitionRequest.TopicData] = {}
        for topic_id, index in keys:
            state = image.topics.by_id[topic_id].partitions[index]
            topic = topics.setdefault(topic_id, AlterPartitionRequest.TopicData(topic_id=topic_id))
            topic.partitions.append(
                AlterPartitionRequest.PartitionData(
                    partition_index=index,
                    leader_epoch=state.leader_epoch,
                    new_isr_with_epochs=[
                        AlterPartitionRequest.BrokerState(broker_id=replica, broker_epoch=image.brokers[replica].epoch)
                        for replica in state.isr
                    ],
                    leader_recovery_state=LeaderRecoveryState.RECOVERED,
                    partition_epoch=state.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker.broker_id,
            broker_epoch=image.brokers[self._broker.broker_id].epoch,
            topics=list(topics.values()),
        )
