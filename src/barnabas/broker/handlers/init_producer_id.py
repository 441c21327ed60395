"""InitProducerId: an id under which a producer's batches are told apart from their repetitions.

Versions: 0–5.
Behaviour: without a transactional id any broker answers with a fresh id and epoch 0; a producer that names its id and
epoch gets a fresh id too, which starts its sequences again.
Differs from Kafka: a transactional id is answered with COORDINATOR_NOT_AVAILABLE: transactions are not offered yet.
"""

from __future__ import annotations

from barnabas.broker.request import Request
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse:
    if message.transactional_id is not None:
        raise ApiError(errors.COORDINATOR_NOT_AVAILABLE if message.transactional_id else errors.INVALID_REQUEST)
    return InitProducerIdResponse(producer_id=await request.broker.producer_ids.next(), producer_epoch=0)
