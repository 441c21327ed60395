"""DescribeLogDirs: the directories of this broker, how full they are and what lies in them.

Versions: 1–5.
Behaviour: null topics means all. A directory that failed is listed with KAFKA_STORAGE_ERROR and without replicas. A
replica that is being copied to another directory is listed in both; the offset lag of the copy is what it lacks.
Clients that set a tagged field in the request also get tagged fields in the response: the state of each log in the
cleaner, the fault of a damaged log, and the logs that are offline.
Differs from Kafka: there are no cordoned directories.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.security.acl import Operation
from barnabas.storage.log import PartitionLog
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.world.disk import DiskFailure


def handle(request: Request, message: DescribeLogDirsRequest) -> Generator[None, None, DescribeLogDirsResponse]:
    store, disk = request.broker.store, request.broker.world.disk
    wanted = None
    if message.topics is not None:
        wanted = {(topic.topic, index) for topic in message.topics for index in topic.partitions}
    response = DescribeLogDirsResponse()
    for directory in sorted({*store.directory_ids, *store.offline}):
        result = DescribeLogDirsResponse.DescribeLogDirsResult(log_dir=directory)
        response.results.append(result)
        if directory in store.offline:
            result.error_code = errors.KAFKA_STORAGE_ERROR.code
            continue
        try:
            result.total_bytes = disk.total_bytes(directory)
            result.usable_bytes = disk.free_bytes(directory)
        except DiskFailure:
            result.error_code = errors.KAFKA_STORAGE_ERROR.code
            continue
        topics: dict[str, DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
        for key in sorted(store.logs):
            yield
            log = store.logs.get(key)
            if log is None:
                continue  # deleted since the request began
            future = store.futures.get(key)
            is_copied = future is not None and future.home.path == directory
            if not (is_copied or store.home_of(log).path == directory) or not (wanted is None or tuple(key) in wanted):
                continue
            topic = topics.setdefault(key.topic, DescribeLogDirsResponse.DescribeLogDirsTopic(name=key.topic))
            if future is not None and is_copied and future.log is not log:
                topic.partitions.append(_future(future.log, log))
                continue
            row = _partition(log)
            if message.include_state and (fault := store.faults.get(key)) is not None:
                row.fault = fault.reason
            if message.include_state and (status := request.broker.cleaner.status(key)) is not None:
                row.cleaner = status.sentence
            topic.partitions.append(row)
        for fault in store.faults.inside(directory) if message.include_state else ():
            name, index = fault.partition
            if fault.is_offline and (wanted is None or (name, index) in wanted):
                topic = topics.setdefault(name, DescribeLogDirsResponse.DescribeLogDirsTopic(name=name))
                topic.partitions.append(
                    DescribeLogDirsResponse.DescribeLogDirsPartition(
                        partition_index=index, fault=fault.reason, is_offline=True
                    )
                )
        result.topics = list(topics.values())
    return response


def _future(log: PartitionLog, current: PartitionLog) -> DescribeLogDirsResponse.DescribeLogDirsPartition:
    return DescribeLogDirsResponse.DescribeLogDirsPartition(
        partition_index=log.partition.partition,
        partition_size=log.size_bytes,
        offset_lag=max(0, current.end_offset - log.end_offset),
        is_future_key=True,
    )


def _partition(log: PartitionLog) -> DescribeLogDirsResponse.DescribeLogDirsPartition:
    return DescribeLogDirsResponse.DescribeLogDirsPartition(
        partition_index=log.partition.partition,
        partition_size=log.size_bytes,
        offset_lag=max(0, log.high_watermark - log.end_offset),
    )


API: Final = Api(ApiKey.DESCRIBE_LOG_DIRS, handle, at=CLIENT, needs=permissions.cluster(Operation.DESCRIBE))
