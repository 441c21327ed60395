"""ListTransactions: the transactional ids whose coordinator this broker is, for administrators.

Versions: 0–2. Version 1 filters by how long a transaction has been open, version 2 by a pattern of ids.
Behaviour: filters for states that do not exist are named in the answer. A pattern must match the whole id, and is
RE2's; one that is no pattern is answered with INVALID_REGULAR_EXPRESSION.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Any, Final

import re2

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, GROUP_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.transactions.state import LABELS
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

PATTERN_MEMORY_BYTES_MAX: Final = 1024 * 1024


async def handle(request: Request, message: ListTransactionsRequest) -> ListTransactionsResponse:
    pattern = _pattern(message.transactional_id_pattern)
    now_ms = request.broker.world.clock.wall_ms()
    known = set(LABELS.values())
    states, ids = set(message.state_filters), set(message.producer_id_filters)
    response = ListTransactionsResponse(unknown_state_filters=sorted(states - known))
    for transaction in await request.broker.transactions.all():
        if (
            (ids and transaction.producer_id not in ids)
            or (states and transaction.state.label not in states)
            or (message.duration_filter >= 0 and now_ms - transaction.started_ms <= message.duration_filter)
            or (pattern is not None and not pattern.fullmatch(transaction.transactional_id))
        ):
            continue
        response.transaction_states.append(
            ListTransactionsResponse.TransactionState(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.label,
            )
        )
    return response


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = PATTERN_MEMORY_BYTES_MAX
    return options


_OPTIONS: Final = _options()


def _pattern(text: str | None) -> Any:
    """Patterns come from the network, so an engine reads them that cannot be made to think for ever."""
    if not text:
        return None
    try:
        return re2.compile(text, _OPTIONS)
    except re2.error as error:
        raise ApiError(errors.INVALID_REGULAR_EXPRESSION, f"{text!r} is no pattern: {error}") from error


API: Final = Api(
    ApiKey.LIST_TRANSACTIONS,
    handle,
    at=CLIENT,
    rows_max=GROUP_ROWS_MAX,
    needs=permissions.listed("transaction_states", "transactional_id", ResourceType.TRANSACTIONAL_ID),
)
