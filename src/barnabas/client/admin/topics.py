"""Topics as the admin client makes, shows, grows, empties and deletes them, and the offsets of their partitions.

Settings of a topic are in ``admin_configs``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.client.cluster.metadata import TopicMetadata
from barnabas.client.offsets import ListedOffset, list_offsets
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse


@dataclass(frozen=True, slots=True)
class NewTopic:
    """What to make. -1 leaves the number to the broker (num.partitions, default.replication.factor)."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)  # instead of both numbers


class CreatedTopic(NamedTuple):
    name: str
    id: Uuid
    partition_count: int
    replication_factor: int


class TopicAdmin(AdminCalls):
    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout_ms: int = 30_000
    ) -> dict[str, CreatedTopic | ApiError]:
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics], timeout_ms=timeout_ms, validate_only=validate_only
        )
        answer = await self._controller(request, CreateTopicsResponse)
        return {
            entry.name: problem(entry.error_code, entry.error_message, about=entry.name)
            or CreatedTopic(entry.name, Uuid(entry.topic_id), entry.num_partitions, entry.replication_factor)
            for entry in answer.topics
        }

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        outcome = (await self.create_topics([topic], validate_only=validate_only))[topic.name]
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    async def delete_topics(self, names: Iterable[str], *, timeout_ms: int = 30_000) -> dict[str, ApiError | None]:
        names = list(names)

        async def attempt() -> DeleteTopicsResponse:
            await self.cluster.refresh()
            connection = self.cluster.connection(self.cluster.metadata.controller_id)
            await connection.open()
            request = DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
            if connection.ranges.highest_common(DeleteTopicsRequest) >= 6:
                states = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
                request = DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
            return await connection.call(request, DeleteTopicsResponse)

        answer = await self.cluster.retrying(attempt)
        self.cluster.forget(names)
        return {
            entry.name: problem(entry.error_code, entry.error_message, about=entry.name)
            for entry in answer.responses
            if entry.name is not None
        }

    async def delete_topic(self, name: str) -> None:
        outcome = (await self.delete_topics([name])).get(name)
        if outcome is not None:
            raise outcome

    async def list_topics(self, *, include_internal: bool = False) -> tuple[TopicMetadata, ...]:
        """All topics by name."""
        topics = await self.cluster.all_topics()
        return tuple(topic for topic in topics if include_internal or not topic.is_internal)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicMetadata | ApiError]:
        known = {topic.name: topic for topic in await self.list_topics(include_internal=True)}
        return {
            name: known.get(name) or ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
            for name in names
        }

    async def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False, timeout_ms: int = 30_000
    ) -> dict[str, ApiError | None]:
        """Grow topics to so many partitions in all."""
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
                for name, count in counts.items()
            ],
            timeout_ms=timeout_ms,
            validate_only=validate_only,
        )
        answer = await self._controller(request, CreatePartitionsResponse)
        self.cluster.invalidate()
        return {
            entry.name: problem(entry.error_code, entry.error_message, about=entry.name) for entry in answer.results
        }

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, int | ApiError]:
        """Drop what is before the offsets (-1: everything); answers with where the logs begin now."""
        outcomes: dict[TopicPartition, int | ApiError] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for place in sorted(offsets):
            await self.cluster.topic(place.topic)
            leader = self.cluster.leader_of(place)
            if leader is None:
                row = errors.LEADER_NOT_AVAILABLE
                outcomes[place] = ApiError(row, f"{place}: {row.text}")
            else:
                by_leader.setdefault(leader, []).append(place)
        for leader, places in sorted(by_leader.items()):
            request = _delete_records_request({place: offsets[place] for place in places}, timeout_ms)
            answer = await self._broker(leader, request, DeleteRecordsResponse)
            for topic in answer.topics:
                for part in topic.partitions:
                    place = TopicPartition(topic.name, part.partition_index)
                    error = problem(part.error_code, None, about=str(place))
                    outcomes[place] = part.low_watermark if error is None else error
        return outcomes

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, ListedOffset]:
        """Offsets by time in ms; -1 latest, -2 earliest, -3 that of the largest timestamp."""
        return await list_offsets(self.cluster, timestamps, isolation_level=isolation_level)


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.assignments else topic.partition_count,
        replication_factor=-1 if topic.assignments else topic.replication_factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.assignments.items()
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


def _delete_records_request(offsets: Mapping[TopicPartition, int], timeout_ms: int) -> DeleteRecordsRequest:
    topics: dict[str, list[DeleteRecordsRequest.DeleteRecordsPartition]] = {}
    for place, offset in offsets.items():
        entry = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=place.partition, offset=offset)
        topics.setdefault(place.topic, []).append(entry)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        timeout_ms=timeout_ms,
    )
