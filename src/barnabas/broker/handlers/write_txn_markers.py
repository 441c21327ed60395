"""WriteTxnMarkers: end transactions in partitions that this broker leads.

Versions: 1–2. Version 2 contains the transaction version by which the epoch of the marker is checked (KIP-1228).
Behaviour: sent by coordinators on other brokers, and by administrators who abort a transaction without a coordinator.
The response is sent when every marker is committed, with an error for each partition.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.markers import Marker
from barnabas.model import errors
from barnabas.model.ids import TopicPartition
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

# Who sends markers looks for a leader, not for a coordinator of groups.
_AS_LEADERS_SAY: Final = {
    errors.COORDINATOR_NOT_AVAILABLE: errors.NOT_LEADER_OR_FOLLOWER,
    errors.COORDINATOR_LOAD_IN_PROGRESS: errors.NOT_LEADER_OR_FOLLOWER,
    errors.NOT_COORDINATOR: errors.NOT_LEADER_OR_FOLLOWER,
}


async def handle(request: Request, message: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    topics = [(wanted, topic) for wanted in message.markers for topic in wanted.topics]
    written = iter(await asyncio.gather(*(_write(request, wanted, topic) for wanted, topic in topics)))
    return WriteTxnMarkersResponse(
        markers=[
            WriteTxnMarkersResponse.WritableTxnMarkerResult(
                producer_id=wanted.producer_id, topics=[next(written) for _ in wanted.topics]
            )
            for wanted in message.markers
        ]
    )


async def _write(
    request: Request,
    wanted: WriteTxnMarkersRequest.WritableTxnMarker,
    topic: WriteTxnMarkersRequest.WritableTxnMarkerTopic,
) -> WriteTxnMarkersResponse.WritableTxnMarkerTopicResult:
    marker = Marker(
        producer=ProducerIdEpoch(wanted.producer_id, wanted.producer_epoch),
        is_commit=wanted.transaction_result,
        coordinator_epoch=wanted.coordinator_epoch,
        version=wanted.transaction_version,
    )
    partitions = [TopicPartition(topic.name, index) for index in topic.partition_indexes]
    said = await request.broker.markers.send(marker, partitions)
    return WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
        name=topic.name,
        partitions=[
            WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                partition_index=partition.partition,
                error_code=_AS_LEADERS_SAY.get(said[partition], said[partition]).code,
            )
            for partition in partitions
        ],
    )


def _needs(request: GuardedRequest, message: WriteTxnMarkersRequest) -> Message | None:
    """CLUSTER_ACTION or ALTER on the cluster; the error is in each partition, as the response has no other place."""
    if request.asker.may_cluster(Operation.CLUSTER_ACTION, Operation.ALTER):
        return None
    code = errors.CLUSTER_AUTHORIZATION_FAILED.code
    response = WriteTxnMarkersResponse
    return response(
        markers=[
            response.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    response.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            response.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in message.markers
        ]
    )


API: Final = Api(
    ApiKey.WRITE_TXN_MARKERS,
    handle,
    at=CLIENT,
    portions=(Portions("markers.topics.partition_indexes", "markers.topics.partitions"),),
    needs=_needs,
)
