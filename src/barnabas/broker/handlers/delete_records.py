"""DeleteRecords: move the start of partitions up, so that what lies below can no longer be read.

Versions: 0–2.
Behaviour: offset −1 means the high watermark. Answers the new start of each partition.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.request import Request
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.world.disk import DiskFailure


def handle(request: Request, message: DeleteRecordsRequest) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    for topic in message.topics:
        rows = []
        for asked in topic.partitions:
            row = DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=asked.partition_index, low_watermark=-1
            )
            rows.append(row)
            try:
                partition = request.broker.replicas.leader(topic.name, asked.partition_index)
                row.low_watermark = partition.delete_records(asked.offset)
            except ApiError as error:
                row.error_code = error.error.code
            except DiskFailure:
                row.error_code = errors.KAFKA_STORAGE_ERROR.code
        response.topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=rows))
    return response
