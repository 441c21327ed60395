"""ListOffsets: where a partition starts and ends, and the first offset at or after a time.

Versions: 1–11.
Behaviour: −1 is the end (the high watermark, or the last stable offset for read_committed), −2 the start, −3 the
record with the largest timestamp, −4 the local start, which here is the start; −5 and −6 ask for tiered storage, which
holds nothing. A time later than every record gives −1. A follower is told the end of the log itself. A leader whose
high watermark has not reached the start of its epoch yet does not know the end: it could seem to go back. Whoever
names offsets in a tagged field is told the times of the records there, and of the newest one.
Differs from Kafka: there is no tiered storage.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from barnabas.broker.access import permissions
from barnabas.broker.handlers.damage import as_api_error
from barnabas.broker.lag.offset_times import OffsetTimes
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Deferred, Request
from barnabas.model import errors
from barnabas.model.errors import ApiError, CorruptBatch
from barnabas.model.ids import NO_LEADER_EPOCH, NO_OFFSET, NO_TIMESTAMP
from barnabas.replication.partition import Partition
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.world.disk import DiskFailure

Row: TypeAlias = ListOffsetsResponse.ListOffsetsPartitionResponse

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
SINCE: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
READ_COMMITTED: Final = 1
LEADER_EPOCH_SINCE: Final = 4
NOT_AVAILABLE_SINCE: Final = 5  # before that, LEADER_NOT_AVAILABLE lets a client come back
CONSUMER: Final = -1


def handle(request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse | Deferred:
    times = OffsetTimes()
    topics: dict[str, dict[int, Row]] = {}
    for topic in message.topics:
        rows = topics.setdefault(topic.name, {})
        for asked in topic.partitions:
            row, partition = Row(partition_index=asked.partition_index), None
            try:
                if asked.partition_index in rows:
                    raise ApiError(errors.INVALID_REQUEST, "the partition is named twice")
                partition = request.broker.replicas.leader_in(
                    topic.name, asked.partition_index, asked.current_leader_epoch
                )
                if asked.timestamp < 0 and request.version < SINCE.get(asked.timestamp, 0):
                    raise ApiError(errors.UNSUPPORTED_VERSION)
                end = _end(partition, message)
                _answer(partition, asked.timestamp, row, end=end)
                if asked.unread_offsets is not None:
                    times.add(partition.log, asked.unread_offsets, end.offset, row)
                if request.version < LEADER_EPOCH_SINCE:
                    row.leader_epoch = NO_LEADER_EPOCH
            except (ApiError, DiskFailure, CorruptBatch) as failure:
                error = as_api_error(failure, partition).error
                is_old = error is errors.OFFSET_NOT_AVAILABLE and request.version < NOT_AVAILABLE_SINCE
                row.error_code = (errors.LEADER_NOT_AVAILABLE if is_old else error).code
            rows[asked.partition_index] = row  # of a partition that is named twice, the refusal
    response = ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(name=name, partitions=list(rows.values()))
            for name, rows in topics.items()
        ]
    )
    return times.answer(request, response)


class _End(NamedTuple):
    """How far the asker may read, and whether that is known by now."""

    offset: int
    is_known: bool

    def known(self) -> int:
        if not self.is_known:
            raise ApiError(errors.OFFSET_NOT_AVAILABLE)
        return self.offset


def _end(partition: Partition, message: ListOffsetsRequest) -> _End:
    if message.replica_id != CONSUMER:
        return _End(partition.log.end_offset, is_known=True)
    offset = partition.readable_end(is_committed_only=message.isolation_level == READ_COMMITTED)
    # After an election the high watermark may lag behind what the last leader had told its clients.
    return _End(offset, is_known=partition.log.high_watermark >= partition.epoch_start_offset)


def _answer(partition: Partition, timestamp: int, row: Row, *, end: _End) -> None:
    log = partition.log
    if timestamp == LATEST:
        row.offset, row.leader_epoch = end.known(), partition.leader_epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        row.offset = log.log_start_offset
        row.leader_epoch = log.epochs.epoch_at(log.log_start_offset)
    elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        row.offset, row.timestamp = NO_OFFSET, NO_TIMESTAMP
    elif timestamp == MAX_TIMESTAMP or timestamp >= 0:
        found = log.offset_of_max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_time(timestamp)
        if found is not None and found.offset < end.offset:
            row.offset, row.timestamp, row.leader_epoch = found.offset, found.timestamp, found.leader_epoch
        else:
            end.known()
    else:
        raise ApiError(errors.UNSUPPORTED_VERSION, f"{timestamp} is no timestamp that can be asked for")


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.DESCRIBE,
    ResourceType.TOPIC,
    ListOffsetsResponse,
    "topics",
    permissions.partitions(ListOffsetsResponse.ListOffsetsTopicResponse, Row),
)


API: Final = Api(
    ApiKey.LIST_OFFSETS,
    handle,
    at=CLIENT,
    portions=(Portions("topics.partitions", "topics.partitions"),),
    needs=_ROWS.check,
)
