"""DeleteRecords: move the start of partitions up, so that what lies below can no longer be read.

Versions: 0–2.
Behaviour: offset −1 means the high watermark. Answers where each partition starts once every living replica starts
there too, or REQUEST_TIMED_OUT for those where that takes longer than the client wants to wait.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from barnabas.broker.access import audit, permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Deferred, Request
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.replication.partition import Partition
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.world.disk import DiskFailure

Row: TypeAlias = DeleteRecordsResponse.DeleteRecordsPartitionResult

TIMEOUT_MS_MAX: Final = 24 * 3600 * 1000


def handle(request: Request, message: DeleteRecordsRequest) -> DeleteRecordsResponse | Deferred:
    response = DeleteRecordsResponse()
    waiting: list[_Waiting] = []
    for topic in message.topics:
        rows = []
        for asked in topic.partitions:
            row = Row(partition_index=asked.partition_index, low_watermark=-1)
            rows.append(row)
            try:
                partition = request.broker.replicas.leader(topic.name, asked.partition_index)
                target = partition.delete_records(asked.offset)
                row.low_watermark = partition.low_watermark
                if row.low_watermark < target:
                    waiting.append(_Waiting(row, partition, target))
            except ApiError as error:
                row.error_code = error.error.code
            except DiskFailure:
                row.error_code = errors.KAFKA_STORAGE_ERROR.code
        response.topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=rows))
    if not waiting:
        return response
    return _wait(request, response, waiting, timeout_ms=min(max(message.timeout_ms, 0), TIMEOUT_MS_MAX))


class _Waiting:
    """One partition whose followers still keep what is to go."""

    __slots__ = ("partition", "row", "target")

    def __init__(self, row: Row, partition: Partition, target: int) -> None:
        self.row = row
        self.partition = partition
        self.target = target

    def is_over(self) -> bool:
        if not self.partition.is_leader:
            self.refuse(errors.NOT_LEADER_OR_FOLLOWER)
            return True
        self.row.low_watermark = self.partition.low_watermark
        return self.row.low_watermark >= self.target

    def refuse(self, error: WireError) -> None:
        self.row.error_code, self.row.low_watermark = error.code, -1


def _wait(request: Request, response: DeleteRecordsResponse, waiting: list[_Waiting], *, timeout_ms: int) -> Deferred:
    deferred = request.defer()

    def look() -> None:
        deferred.attempt(lambda: response if all(each.is_over() for each in waiting) else None)

    def last_answer() -> DeleteRecordsResponse:
        for each in waiting:
            if not each.is_over():
                each.refuse(errors.REQUEST_TIMED_OUT)
        return response

    def done(_: object) -> None:
        timer.cancel()
        for each in waiting:
            each.partition.low_watermark_waiting.discard(look)

    timer = request.broker.timers.after(timeout_ms, lambda: deferred.attempt(last_answer))
    for each in waiting:
        each.partition.low_watermark_waiting.add(look)
    deferred.future.add_done_callback(done)
    return deferred


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.DELETE,
    ResourceType.TOPIC,
    DeleteRecordsResponse,
    "topics",
    permissions.partitions(DeleteRecordsResponse.DeleteRecordsTopicResult, Row, low_watermark=-1),
)


API: Final = Api(
    ApiKey.DELETE_RECORDS,
    handle,
    at=CLIENT,
    portions=(Portions("topics.partitions", "topics.partitions"),),
    needs=_ROWS.check,
    audit=audit.topics,
)
