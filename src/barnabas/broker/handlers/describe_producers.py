"""DescribeProducers: the idempotent and transactional producers of partitions, for administrators.

Versions: 0.
Behaviour: each partition that this broker leads lists its producers that have not expired.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse


def handle(request: Request, message: DescribeProducersRequest) -> DescribeProducersResponse:
    response = DescribeProducersResponse()
    for topic in message.topics:
        rows = []
        for index in topic.partition_indexes:
            row = DescribeProducersResponse.PartitionResponse(partition_index=index)
            rows.append(row)
            try:
                partition = request.broker.replicas.leader(topic.name, index)
            except ApiError as error:
                row.error_code, row.error_message = error.error.code, error.message
                continue
            row.active_producers = [
                DescribeProducersResponse.ProducerState(
                    producer_id=state.producer_id,
                    producer_epoch=state.epoch,
                    last_sequence=state.last_sequence,
                    last_timestamp=state.last_timestamp,
                    coordinator_epoch=state.coordinator_epoch,
                    current_txn_start_offset=state.transaction_first_offset,
                )
                for _, state in sorted(partition.log.producers.by_id.items())
            ]
        response.topics.append(DescribeProducersResponse.TopicResponse(name=topic.name, partitions=rows))
    return response


_ROWS: Final = permissions.Rows(
    "topics",
    Operation.READ,
    ResourceType.TOPIC,
    DescribeProducersResponse,
    "topics",
    permissions.partitions(
        DescribeProducersResponse.TopicResponse, DescribeProducersResponse.PartitionResponse, parts="partition_indexes"
    ),
)


API: Final = Api(
    ApiKey.DESCRIBE_PRODUCERS,
    handle,
    at=CLIENT,
    portions=(Portions("topics.partition_indexes", "topics.partitions"),),
    needs=_ROWS.check,
)
