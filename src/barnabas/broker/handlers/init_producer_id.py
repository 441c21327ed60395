"""InitProducerId: an id and an epoch under which a producer's batches are told apart from others' and from repetitions.

Versions: 0–5. Before version 4 a fenced producer is told INVALID_PRODUCER_EPOCH.
Behaviour: without a transactional id any broker answers with a fresh id and epoch 0; a producer that names its id and
epoch gets a fresh id too, which starts its sequences again. With one, the coordinator raises the epoch, which shuts out
whoever used the transactional id before; a transaction that was left open is aborted first, while the producer asks
again.
Differs from Kafka: a producer with an old epoch is fenced also while its heir has a transaction open; Kafka aborts that
transaction.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.requests import InitProducer
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCED_SINCE: Final = 4


async def handle(request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse:
    if (message.producer_id == NO_PRODUCER_ID) != (message.producer_epoch == NO_PRODUCER_EPOCH):
        return InitProducerIdResponse(error_code=errors.INVALID_REQUEST.code, producer_epoch=NO_PRODUCER_EPOCH)
    if message.transactional_id is None:
        return InitProducerIdResponse(producer_id=await request.broker.producer_ids.next(), producer_epoch=0)
    is_known = message.producer_id != NO_PRODUCER_ID
    outcome = await request.broker.transactions.init_producer(
        InitProducer(
            transactional_id=message.transactional_id,
            timeout_ms=message.transaction_timeout_ms,
            expected=ProducerIdEpoch(message.producer_id, message.producer_epoch) if is_known else None,
        )
    )
    error = outcome.error
    if request.version < FENCED_SINCE and error is errors.PRODUCER_FENCED:
        error = errors.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(
        error_code=error.code, producer_id=outcome.producer_id, producer_epoch=outcome.producer_epoch
    )


def _needs(request: GuardedRequest, message: InitProducerIdRequest) -> None:
    """WRITE on the transactional id; without one, WRITE on any topic or IDEMPOTENT_WRITE on the cluster."""
    if message.transactional_id is not None:
        request.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
    elif not request.asker.may_any(Operation.WRITE, ResourceType.TOPIC):
        request.require_cluster(Operation.IDEMPOTENT_WRITE)


def refuse(message: InitProducerIdRequest, error: ApiError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.error.code, producer_epoch=NO_PRODUCER_EPOCH)


API: Final = Api(ApiKey.INIT_PRODUCER_ID, handle, at=CLIENT, needs=_needs, refuse=refuse)
