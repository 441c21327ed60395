"""WriteShareGroupState: change the state of share-partitions whose share coordinator is this broker.

Versions: 0–1.
Behaviour: as Kafka's. Sent by share-partition leaders. Writes of earlier leaders and of earlier states are fenced.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.handlers import share_state_rows
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.share_state.batches import StateBatch
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import Write
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)


async def handle(request: Request, message: WriteShareGroupStateRequest) -> Any:
    return await share_state_rows.answer(request, message, WriteShareGroupStateResponse, _request)


def _request(key: SharePartitionKey, row: WriteShareGroupStateRequest.PartitionData) -> Write:
    batches = (
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in row.state_batches
    )
    return Write(key, row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count, tuple(batches))


API: Final = Api(
    ApiKey.WRITE_SHARE_GROUP_STATE,
    handle,
    at=CLIENT,
    needs=share_state_rows.cluster_action(WriteShareGroupStateResponse),
)
