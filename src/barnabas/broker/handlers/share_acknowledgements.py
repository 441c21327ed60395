"""The acknowledgements of a request: checked row by row, applied partition by partition, answered when written down."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.broker.requests.request import Request
from barnabas.broker.share.records import Acknowledge, Acknowledgement
from barnabas.coordinator.share_state.records import SharePartitionKey
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.security.acl import Operation, ResourceType

RENEW_SINCE: Final = 2  # version of ShareFetch and ShareAcknowledge
OK: Final = ApiError(errors.NONE)

Outcomes = dict[tuple[Uuid, int], ApiError]


def check_read(request: Request, topic_id: Uuid) -> None:
    """ApiError if the client may not read the topic, or if there is no such topic."""
    topic = request.broker.image.topics.by_id.get(topic_id)
    if topic is None:
        raise ApiError(errors.UNKNOWN_TOPIC_ID)
    if request.asker is not None and not request.asker.may(Operation.READ, ResourceType.TOPIC, topic.name):
        raise ApiError(errors.TOPIC_AUTHORIZATION_FAILED)


async def acknowledge(
    request: Request, group_id: str, member_id: str, wanted: Mapping[tuple[Uuid, int], Sequence[Any]], *, is_renew: bool
) -> Outcomes:
    """Apply the acknowledgement batches of a request, by topic id and partition; an outcome for each partition."""
    outcomes = await asyncio.gather(
        *(_one(request, group_id, member_id, pair, batches, is_renew=is_renew) for pair, batches in wanted.items())
    )
    tally = request.broker.share_leaders.tally
    tally.acknowledgements += bool(wanted)
    tally.failed_acknowledgements += any(outcome is not OK for outcome in outcomes)
    return dict(zip(wanted, outcomes, strict=True))


async def _one(
    request: Request, group_id: str, member_id: str, pair: tuple[Uuid, int], batches: Sequence[Any], *, is_renew: bool
) -> ApiError:
    leaders = request.broker.share_leaders
    try:
        rows = _checked(batches, version=request.version, is_renew=is_renew)
        check_read(request, pair[0])
        leader = leaders.find(SharePartitionKey(group_id, *pair))
        if leader is None:
            request.broker.replicas.leader_by_id(*pair)
            raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        await leader.acknowledge(member_id, rows)
    except ApiError as error:
        return error
    counts = leaders.tally.records_acknowledged
    for row in rows:
        if len(row.types) == 1:
            counts[Acknowledge(row.types[0])] += row.last - row.first + 1
        else:
            for kind in row.types:
                counts[Acknowledge(kind)] += 1
    return OK


def _checked(batches: Sequence[Any], *, version: int, is_renew: bool) -> list[Acknowledgement]:
    """The batches, if they are in order and each has one acknowledge type, or one for each of its offsets."""
    largest = Acknowledge.RENEW if version >= RENEW_SINCE else Acknowledge.REJECT
    rows: list[Acknowledgement] = []
    last_offset = -1
    for batch in batches:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if first > last:
            raise ApiError(errors.INVALID_REQUEST, f"first offset {first} is greater than last offset {last}")
        if first <= last_offset:
            raise ApiError(errors.INVALID_REQUEST, f"offset {first} is acknowledged twice or out of order")
        if not types:
            raise ApiError(errors.INVALID_REQUEST, "an acknowledgement batch has no acknowledge type")
        if len(types) > 1 and len(types) != last - first + 1:
            raise ApiError(errors.INVALID_REQUEST, f"{len(types)} acknowledge types for {last - first + 1} offsets")
        if min(types) < Acknowledge.GAP or max(types) > largest:
            raise ApiError(errors.INVALID_REQUEST, f"there are no acknowledge types {sorted(set(types))}")
        if Acknowledge.RENEW in types and not is_renew:
            raise ApiError(errors.INVALID_REQUEST, "acknowledge type RENEW needs IsRenewAck")
        rows.append(Acknowledgement(first, last, types))
        last_offset = last
    return rows
