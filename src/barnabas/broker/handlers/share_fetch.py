"""ShareFetch: a member of a share group acquires records, and acknowledges those of earlier fetches.

Versions: 1–2 (2 has the acquire mode and renewal of locks).
Behaviour: as Kafka's. Acknowledgements are applied first. A request without records to acquire waits for them as long
as it says; a request that renews locks fetches nothing. A session ends with its connection.
Differs from Kafka: min_bytes is not waited for, the first record ends the wait; batches without acquired records are
left out of the answer; markers of transactions are archived by the broker.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.coordinators.share_groups import check_enabled
from barnabas.broker.handlers.leadership import leader_of, node_endpoints
from barnabas.broker.handlers.share_acknowledgements import Outcomes, acknowledge
from barnabas.broker.handlers.share_fetching import Results, ShareFetch, close_session, open_session
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.broker.share.leader import Fetched
from barnabas.broker.share.sessions import FINAL_EPOCH
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

MEMBER_ID_LENGTH_MAX: Final = 36


async def handle(request: Request, message: ShareFetchRequest) -> ShareFetchResponse:
    check_enabled(request.broker)
    if message.group_id is None:
        raise ApiError(errors.INVALID_REQUEST, "Invalid group id in the request.")
    check_member_id(message.member_id)
    if message.is_renew_ack and (message.max_bytes or message.min_bytes or message.max_records or message.max_wait_ms):
        raise ApiError(
            errors.INVALID_REQUEST, "MaxBytes, MinBytes, MaxRecords and MaxWaitMs must be 0 if IsRenewAck is true"
        )
    try:
        session = open_session(request, message)
    except ApiError as error:
        if error.error is errors.SHARE_SESSION_LIMIT_REACHED:
            await request.broker.timers.sleep(max(0, message.max_wait_ms))
        raise
    wanted = {
        (Uuid(topic.topic_id), row.partition_index): row.acknowledgement_batches
        for topic in message.topics
        for row in topic.partitions
        if row.acknowledgement_batches
    }
    outcomes = await acknowledge(
        request, session.key.group_id, session.key.member_id, wanted, is_renew=message.is_renew_ack
    )
    results: Results = {}
    if message.share_session_epoch == FINAL_EPOCH:
        await close_session(request, session)
    elif not message.is_renew_ack:
        results = await ShareFetch(request, message, session).run()
    return _response(request, session.key.group_id, results, outcomes)


def check_member_id(member_id: str | None) -> None:
    """INVALID_REQUEST unless the member id is the text of a UUID, as clients make it."""
    if not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        raise ApiError(errors.INVALID_REQUEST, "Invalid member id in the request.")


def _response(request: Request, group_id: str, results: Results, outcomes: Outcomes) -> ShareFetchResponse:
    response = ShareFetchResponse(
        acquisition_lock_timeout_ms=request.broker.groups.share_settings_of(group_id).record_lock_duration_ms
    )
    topics: dict[Uuid, ShareFetchResponse.ShareFetchableTopicResponse] = {}
    moved: set[int] = set()
    failed = False
    for pair in dict.fromkeys((*results, *outcomes)):
        topic_id, index = pair
        row = ShareFetchResponse.PartitionData(partition_index=index, records=b"")
        result, outcome = results.get(pair), outcomes.get(pair)
        if isinstance(result, Fetched):
            row.records = result.data
            row.acquired_records = [
                ShareFetchResponse.AcquiredRecords(
                    first_offset=each.first, last_offset=each.last, delivery_count=each.delivery_count
                )
                for each in result.acquired
            ]
        elif result is not None:
            failed = True
            row.error_code, row.error_message = result.error.code, result.message
        if outcome is not None and outcome.error is not errors.NONE:
            row.acknowledge_error_code, row.acknowledge_error_message = outcome.error.code, outcome.message
        if errors.NOT_LEADER_OR_FOLLOWER.code in (row.error_code, row.acknowledge_error_code):
            leader = leader_of(request, "", topic_id, index)
            if leader is not None:
                row.current_leader = ShareFetchResponse.LeaderIdAndEpoch(**leader._asdict())
                moved.add(leader.leader_id)
        if topic_id not in topics:
            topics[topic_id] = ShareFetchResponse.ShareFetchableTopicResponse(topic_id=topic_id)
        topics[topic_id].partitions.append(row)
    response.responses = list(topics.values())
    response.node_endpoints = node_endpoints(request, moved, ShareFetchResponse.NodeEndpoint)
    request.broker.share_leaders.tally.failed_fetches += failed
    return response


def _needs(request: GuardedRequest, message: ShareFetchRequest) -> None:
    """READ on the group; READ on each topic is checked when its partitions are read."""
    request.require(Operation.READ, ResourceType.GROUP, message.group_id or "")


API: Final = Api(ApiKey.SHARE_FETCH, handle, at=CLIENT, needs=_needs)
