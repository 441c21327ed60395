"""DescribeTransactions: the state of transactional ids, for administrators.

Versions: 0.
Behaviour: each id is answered alone; one whose coordinator is elsewhere with NOT_COORDINATOR, one that nobody uses with
TRANSACTIONAL_ID_NOT_FOUND.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.coordinator.transactions.state import Transaction
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

Row = DescribeTransactionsResponse.TransactionState


async def handle(request: Request, message: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    response = DescribeTransactionsResponse()
    for transactional_id in message.transactional_ids:
        try:
            row = _row(await request.broker.transactions.describe(transactional_id))
        except ApiError as error:
            row = Row(transactional_id=transactional_id, error_code=error.error.code)
        response.transaction_states.append(row)
    return response


def _row(transaction: Transaction) -> Row:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(index)
    return Row(
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.label,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic.items()
        ],
    )


_ROWS: Final = permissions.Rows(
    "transactional_ids",
    Operation.DESCRIBE,
    ResourceType.TRANSACTIONAL_ID,
    DescribeTransactionsResponse,
    "transaction_states",
    lambda row, error: Row(transactional_id=row, error_code=error.code),
    permissions.itself,
)


def _needs(request: GuardedRequest, message: DescribeTransactionsRequest) -> Message | None:
    """DESCRIBE on each transactional id; topics without DESCRIBE are left out of the response."""
    answer = _ROWS.check(request, message)
    if answer is None:
        request.when_answered(lambda response: _hide_topics(request, response))
    return answer


def _hide_topics(request: GuardedRequest, response: DescribeTransactionsResponse) -> None:
    for state in response.transaction_states:
        state.topics = [row for row in state.topics if permissions.may_describe_topic(request, row.topic)]


API: Final = Api(
    ApiKey.DESCRIBE_TRANSACTIONS,
    handle,
    at=CLIENT,
    portions=(Portions("transactional_ids", "transaction_states"),),
    needs=_needs,
)
