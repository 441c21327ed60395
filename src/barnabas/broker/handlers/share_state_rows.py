"""The five APIs of the share coordinator: rows of share-partitions in, rows of results out, all at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.requests.api import Check
from barnabas.broker.requests.request import Request
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.coordinator.share_state.requests import ShareState
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.security.acl import Operation
from barnabas.wire.message import Message

MakeRequest = Callable[[SharePartitionKey, Any], Any]  # (share-partition, row of the request)
FillRow = Callable[[Any, ShareState], None]  # (row of the response, answer of the shard)


async def answer(request: Request, message: Any, response: Any, make: MakeRequest, fill: FillRow | None = None) -> Any:
    """Ask the shards about every row of a message; ``response`` is the class of the answer."""
    result_type = _result_type(response)
    pairs = [(Uuid(topic.topic_id), row) for topic in message.topics for row in topic.partitions]
    rows = iter(
        await asyncio.gather(
            *(_row(request, message.group_id, topic_id, row, response, make, fill) for topic_id, row in pairs)
        )
    )
    return response(
        results=[
            result_type(topic_id=topic.topic_id, partitions=[next(rows) for _ in topic.partitions])
            for topic in message.topics
        ]
    )


async def _row(
    request: Request, group_id: str, topic_id: Uuid, row: Any, response: Any, make: MakeRequest, fill: FillRow | None
) -> Any:
    result = response.PartitionResult(partition=row.partition)
    key = SharePartitionKey(group_id, topic_id, row.partition)
    try:
        if not group_id:
            raise ApiError(errors.INVALID_REQUEST, "The group id cannot be empty.")
        if row.partition < 0:
            raise ApiError(errors.INVALID_REQUEST, "The partition id cannot be a negative number.")
        found = await request.broker.share_state.ask(key, make(key, row))
        if fill is not None:
            fill(result, found)
    except ApiError as error:
        result.error_code, result.error_message = error.error.code, error.message
    return result


def _result_type(response: Any) -> Any:
    """The class of the rows of ``results``, which has another name in every API."""
    (field,) = (field for field in response.fields if field.name == "results")
    return field.type.element.target


def cluster_action(response: Any) -> Check:
    """CLUSTER_ACTION on the cluster; the error is in each row, as the responses have no other place for it."""

    def needs(request: GuardedRequest, message: Any) -> Message | None:
        if request.asker.may_cluster(Operation.CLUSTER_ACTION):
            return None
        code = errors.CLUSTER_AUTHORIZATION_FAILED.code
        result_type = _result_type(response)
        refused: Message = response(
            results=[
                result_type(
                    topic_id=topic.topic_id,
                    partitions=[
                        response.PartitionResult(partition=row.partition, error_code=code) for row in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )
        return refused

    return needs
