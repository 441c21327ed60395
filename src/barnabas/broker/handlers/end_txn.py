"""EndTxn: commit or abort a transaction.

Versions: 0–5. Before version 2 a fenced producer is told INVALID_PRODUCER_EPOCH. Version 5 is that of transactions
version 2: every end raises the epoch, and the answer carries the id and epoch for the next transaction.
Behaviour: answered when the decision is committed; the markers follow, and until they are written the next transaction
is answered with CONCURRENT_TRANSACTIONS.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.requests import EndTransaction
from barnabas.coordinator.transactions.state import EPOCH_BUMP_SINCE
from barnabas.model import errors
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE: Final = 2
VERSION_2_SINCE: Final = 5


async def handle(request: Request, message: EndTxnRequest) -> EndTxnResponse:
    outcome = await request.broker.transactions.end(
        EndTransaction(
            transactional_id=message.transactional_id,
            producer=ProducerIdEpoch(message.producer_id, message.producer_epoch),
            is_commit=message.committed,
            version=EPOCH_BUMP_SINCE if request.version >= VERSION_2_SINCE else 0,
        )
    )
    error = outcome.error
    if request.version < FENCED_SINCE and error is errors.PRODUCER_FENCED:
        error = errors.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=error.code, producer_id=outcome.producer_id, producer_epoch=outcome.producer_epoch)


API: Final = Api(ApiKey.END_TXN, handle, at=CLIENT, needs=permissions.transactional_id(Operation.WRITE))
