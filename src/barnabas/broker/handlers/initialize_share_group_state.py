"""InitializeShareGroupState: create the state of share-partitions whose share coordinator is this broker.

Versions: 0.
Behaviour: as Kafka's. Sent by group coordinators. A smaller state epoch than the last one is fenced.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.handlers import share_state_rows
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import Initialize
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


async def handle(request: Request, message: InitializeShareGroupStateRequest) -> Any:
    return await share_state_rows.answer(request, message, InitializeShareGroupStateResponse, _request)


def _request(key: SharePartitionKey, row: InitializeShareGroupStateRequest.PartitionData) -> Initialize:
    return Initialize(key, row.state_epoch, row.start_offset)


API: Final = Api(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    handle,
    at=CLIENT,
    needs=share_state_rows.cluster_action(InitializeShareGroupStateResponse),
)
