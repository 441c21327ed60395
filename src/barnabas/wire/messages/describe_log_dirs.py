"""DescribeLogDirs: tools ask a broker for its log directories and the replicas in them.

Version 4 adds the size of the volume, version 5 whether a directory is cordoned. Barnabas adds tagged fields to the
response, only for clients that request them with a tagged field: the state of a log in the cleaner, the fault of a
damaged log, and whether that log is offline.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, int64, string
from barnabas.wire.schema import TAGS_OF_OURS


class DescribeLogDirsRequest(Message, api=ApiKey.DESCRIBE_LOG_DIRS, versions=range(1, 6), flexible=2):
    class DescribableLogDirTopic(Message):
        topic: str = string()
        partitions: list[int] = array(int32)

    topics: list[DescribableLogDirTopic] | None = array(DescribableLogDirTopic, nullable=True)
    include_state: bool = boolean(since=2, ignorable=True, tag=TAGS_OF_OURS, tagged_since=2)


class DescribeLogDirsResponse(Message, api=ApiKey.DESCRIBE_LOG_DIRS, versions=range(1, 6), flexible=2):
    class DescribeLogDirsResult(Message):
        error_code: int = int16()
        log_dir: str = string()
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = array("DescribeLogDirsTopic")
        total_bytes: int = int64(since=4, default=-1, ignorable=True)
        usable_bytes: int = int64(since=4, default=-1, ignorable=True)
        is_cordoned: bool = boolean(since=5, ignorable=True)

    class DescribeLogDirsTopic(Message):
        name: str = string()
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = array("DescribeLogDirsPartition")

    class DescribeLogDirsPartition(Message):
        partition_index: int = int32()
        partition_size: int = int64()
        offset_lag: int = int64()
        is_future_key: bool = boolean()
        cleaner: str | None = string(
            since=2, nullable=True, default=None, ignorable=True, tag=TAGS_OF_OURS, tagged_since=2
        )
        fault: str | None = string(
            since=2, nullable=True, default=None, ignorable=True, tag=TAGS_OF_OURS + 1, tagged_since=2
        )
        is_offline: bool = boolean(since=2, ignorable=True, tag=TAGS_OF_OURS + 2, tagged_since=2)

    throttle_time_ms: int = int32()
    error_code: int = int16(since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
