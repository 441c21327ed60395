"""DeleteShareGroupState: delete the state of share-partitions whose share coordinator is this broker.

Versions: 0.
Behaviour: as Kafka's. Sent by group coordinators. State that does not exist is no error.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.handlers import share_state_rows
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import Delete
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)


async def handle(request: Request, message: DeleteShareGroupStateRequest) -> Any:
    return await share_state_rows.answer(request, message, DeleteShareGroupStateResponse, _request)


def _request(key: SharePartitionKey, row: DeleteShareGroupStateRequest.PartitionData) -> Delete:
    return Delete(key)


API: Final = Api(
    ApiKey.DELETE_SHARE_GROUP_STATE,
    handle,
    at=CLIENT,
    needs=share_state_rows.cluster_action(DeleteShareGroupStateResponse),
)
