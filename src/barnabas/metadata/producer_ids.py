"""AllocateProducerIds: blocks of producer ids for brokers to hand out, never the same one twice."""

from __future__ import annotations

from typing import Final

from barnabas.metadata.decision import Decision
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.records import ProducerIdsRecord
from barnabas.metadata.registrations import check_broker_epoch
from barnabas.model.errors import UNKNOWN_SERVER_ERROR, ApiError
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

BLOCK_SIZE: Final = 1000
PRODUCER_ID_MAX: Final = 2**63 - 1


def allocate_producer_ids(
    image: ClusterImage, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    first = max(image.next_producer_id, 0)
    if first > PRODUCER_ID_MAX - BLOCK_SIZE:
        raise ApiError(UNKNOWN_SERVER_ERROR, "all producer ids have been handed out")
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=first + BLOCK_SIZE
    )
    return Decision([record], AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE))
