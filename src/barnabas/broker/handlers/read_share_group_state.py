"""ReadShareGroupState: the state of share-partitions whose share coordinator is this broker.

Versions: 0.
Behaviour: as Kafka's. Sent by share-partition leaders. A new leader epoch fences the writes of earlier leaders.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.handlers import share_state_rows
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import Read, ShareState
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)


async def handle(request: Request, message: ReadShareGroupStateRequest) -> Any:
    return await share_state_rows.answer(request, message, ReadShareGroupStateResponse, _request, _fill)


def _request(key: SharePartitionKey, row: ReadShareGroupStateRequest.PartitionData) -> Read:
    return Read(key, row.leader_epoch)


def _fill(row: ReadShareGroupStateResponse.PartitionResult, state: ShareState) -> None:
    row.state_epoch = state.state_epoch
    row.start_offset = state.start_offset
    row.state_batches = [ReadShareGroupStateResponse.StateBatch(**batch._asdict()) for batch in state.batches]


API: Final = Api(
    ApiKey.READ_SHARE_GROUP_STATE, handle, at=CLIENT, needs=share_state_rows.cluster_action(ReadShareGroupStateResponse)
)
