"""Where replicas are, as the admin client moves them: reassignments, elections, and from one disk to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.client.partitions.protocol import by_topic
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class Reassignment(NamedTuple):
    """Under way: who has the partition now, who is to get it, who is to lose it."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ReplicaAdmin(AdminCalls):
    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int = 60_000
    ) -> dict[TopicPartition, ApiError | None]:
        """Move partitions to these brokers, the first of which is to lead; None stops a move that is under way."""
        kind = AlterPartitionReassignmentsRequest
        request = kind(
            timeout_ms=timeout_ms,
            topics=[
                kind.ReassignableTopic(
                    name=topic,
                    partitions=[
                        kind.ReassignablePartition(
                            partition_index=index, replicas=_listed(targets[TopicPartition(topic, index)])
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(targets).items()
            ],
        )
        answer = await self._controller(request, AlterPartitionReassignmentsResponse)
        error = problem(answer.error_code, answer.error_message, about="the reassignment")
        if error is not None:
            raise error
        self.cluster.invalidate()
        return {
            TopicPartition(topic.name, part.partition_index): problem(
                part.error_code, part.error_message, about=f"{topic.name}-{part.partition_index}"
            )
            for topic in answer.responses
            for part in topic.partitions
        }

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int = 60_000
    ) -> dict[TopicPartition, Reassignment]:
        """Those under way, of these partitions or of all."""
        kind = ListPartitionReassignmentsRequest
        topics = None
        if partitions is not None:
            topics = [
                kind.ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic(partitions).items()
            ]
        answer = await self._controller(kind(timeout_ms=timeout_ms, topics=topics), ListPartitionReassignmentsResponse)
        error = problem(answer.error_code, answer.error_message, about="reassignments")
        if error is not None:
            raise error
        return {
            TopicPartition(topic.name, part.partition_index): Reassignment(
                tuple(part.replicas), tuple(part.adding_replicas), tuple(part.removing_replicas)
            )
            for topic in answer.topics
            for part in topic.partitions
        }

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        kind: Literal["preferred", "unclean"] = "preferred",
        timeout_ms: int = 60_000,
    ) -> dict[TopicPartition, ApiError | None]:
        """Have leaders elected for these partitions, or for all: the preferred ones, or any that is left."""
        topics = None
        if partitions is not None:
            topics = [
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=indexes)
                for topic, indexes in by_topic(partitions).items()
            ]
        request = ElectLeadersRequest(
            election_type=1 if kind == "unclean" else 0, topic_partitions=topics, timeout_ms=timeout_ms
        )
        answer = await self._controller(request, ElectLeadersResponse)
        error = problem(answer.error_code, None, about="the election")
        if error is not None:
            raise error
        self.cluster.invalidate()
        return {
            TopicPartition(topic.topic, part.partition_id): problem(
                part.error_code, part.error_message, about=f"{topic.topic}-{part.partition_id}"
            )
            for topic in answer.replica_election_results
            for part in topic.partition_result
        }

    async def move_replicas(
        self, broker: int, directories: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, ApiError | None]:
        """Move a broker's replicas to other ones of its directories."""
        kind = AlterReplicaLogDirsRequest
        request = kind(
            dirs=[
                kind.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        kind.AlterReplicaLogDirTopic(name=topic, partitions=indexes)
                        for topic, indexes in by_topic(
                            place for place, target in directories.items() if target == path
                        ).items()
                    ],
                )
                for path in sorted(set(directories.values()))
            ]
        )
        answer = await self._broker(broker, request, AlterReplicaLogDirsResponse)
        return {
            TopicPartition(topic.topic_name, part.partition_index): problem(
                part.error_code, None, about=f"{topic.topic_name}-{part.partition_index}"
            )
            for topic in answer.results
            for part in topic.partitions
        }


def _listed(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)
