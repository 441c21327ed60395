"""ReadShareGroupStateSummary: the start offsets of share-partitions whose share coordinator is this broker.

Versions: 0–1.
Behaviour: as Kafka's. Sent by group coordinators. A share-partition without state has start offset -1.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.handlers import share_state_rows
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import ReadSummary, ShareState
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


async def handle(request: Request, message: ReadShareGroupStateSummaryRequest) -> Any:
    return await share_state_rows.answer(request, message, ReadShareGroupStateSummaryResponse, _request, _fill)


def _request(key: SharePartitionKey, row: ReadShareGroupStateSummaryRequest.PartitionData) -> ReadSummary:
    return ReadSummary(key)


def _fill(row: ReadShareGroupStateSummaryResponse.PartitionResult, state: ShareState) -> None:
    row.state_epoch = state.state_epoch
    row.leader_epoch = state.leader_epoch
    row.start_offset = state.start_offset
    row.delivery_complete_count = state.delivery_complete_count


API: Final = Api(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    handle,
    at=CLIENT,
    needs=share_state_rows.cluster_action(ReadShareGroupStateSummaryResponse),
)
