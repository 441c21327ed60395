"""The cluster, its brokers and their disks as the admin client sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.client.cluster.metadata import Broker
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.transport.versions import Shaped
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

FENCED_SINCE: Final = 2


class ClusterDescription(NamedTuple):
    cluster_id: str
    controller_id: int
    brokers: tuple[Broker, ...]
    fenced: frozenset[int] = frozenset()  # those of them that are not running, or not heard of


class ReplicaOnDisk(NamedTuple):
    size_bytes: int
    offset_lag: int
    is_future: bool
    cleaner: str | None = None  # state of the cleaner for this log, if the broker reports it
    fault: str | None = None  # why the log is damaged or offline
    is_offline: bool = False  # whether the log is offline although its directory is online


class LogDirectory(NamedTuple):
    path: str
    error: ApiError | None
    total_bytes: int  # -1 if the broker does not say
    usable_bytes: int
    replicas: dict[TopicPartition, ReplicaOnDisk]


class BrokerAdmin(AdminCalls):
    async def describe_cluster(self) -> ClusterDescription:
        """All that are registered; older brokers tell only of those that run."""
        request = Shaped(
            DescribeClusterRequest,
            lambda version: DescribeClusterRequest(include_fenced_brokers=version >= FENCED_SINCE),
        )
        answer = await self._broker(None, request, DescribeClusterResponse)
        error = problem(answer.error_code, answer.error_message, about="the cluster")
        if error is not None:
            raise error
        brokers = tuple(sorted(Broker(entry.broker_id, entry.host, entry.port, entry.rack) for entry in answer.brokers))
        fenced = frozenset(entry.broker_id for entry in answer.brokers if entry.is_fenced)
        return ClusterDescription(answer.cluster_id, answer.controller_id, brokers, fenced)

    async def describe_log_dirs(
        self, broker: int, partitions: Iterable[TopicPartition] | None = None, *, include_state: bool = False
    ) -> tuple[LogDirectory, ...]:
        """Every directory of a broker with the replicas that it holds, or with these of them.

        ``include_state`` also requests the state of each log in the cleaner, which only Barnabas knows.
        """
        topics: dict[str, list[int]] = {}
        for topic, index in partitions or ():
            topics.setdefault(topic, []).append(index)
        asked = DescribeLogDirsRequest.DescribableLogDirTopic
        rows = None if partitions is None else [asked(topic=name, partitions=each) for name, each in topics.items()]
        request = DescribeLogDirsRequest(topics=rows, include_state=include_state)
        answer = await self._broker(broker, request, DescribeLogDirsResponse)
        error = problem(answer.error_code, None, about=f"broker {broker}")
        if error is not None:
            raise error
        return tuple(
            LogDirectory(
                result.log_dir,
                problem(result.error_code, None, about=result.log_dir),
                result.total_bytes,
                result.usable_bytes,
                {
                    TopicPartition(topic.name, part.partition_index): ReplicaOnDisk(
                        part.partition_size,
                        part.offset_lag,
                        part.is_future_key,
                        part.cleaner,
                        part.fault,
                        part.is_offline,
                    )
                    for topic in result.topics
                    for part in topic.partitions
                },
            )
            for result in answer.results
        )

    async def alter_replica_log_dirs(
        self, broker: int, directories: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, ApiError | None]:
        """Move replicas of a broker to others of its directories; what became of each request.

        The moves go on afterwards: ``describe_log_dirs`` shows them until they are done.
        """
        wanted: dict[str, dict[str, list[int]]] = {}
        for (topic, index), path in directories.items():
            wanted.setdefault(path, {}).setdefault(topic, []).append(index)
        named = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                    path=path, topics=[named(name=name, partitions=each) for name, each in topics.items()]
                )
                for path, topics in wanted.items()
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
