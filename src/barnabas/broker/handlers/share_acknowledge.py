"""ShareAcknowledge: a member of a share group acknowledges records without fetching more.

Versions: 1–2 (2 has renewal of locks).
Behaviour: as Kafka's. The acknowledgements of a partition are applied all or none, and answered when they are written
down with the share coordinator. Epoch -1 closes the share session and releases what the member has acquired.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.coordinators.share_groups import check_enabled
from barnabas.broker.handlers.leadership import leader_of, node_endpoints
from barnabas.broker.handlers.share_acknowledgements import Outcomes, acknowledge
from barnabas.broker.handlers.share_fetch import check_member_id
from barnabas.broker.handlers.share_fetching import close_session
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SessionKey
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse


async def handle(request: Request, message: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    check_enabled(request.broker)
    if message.group_id is None:
        raise ApiError(errors.INVALID_REQUEST, "Invalid group id in the request.")
    check_member_id(message.member_id)
    key, epoch = SessionKey(message.group_id, message.member_id or ""), message.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise ApiError(errors.INVALID_SHARE_SESSION_EPOCH)
    sessions = request.broker.share_sessions
    session = sessions.get(key) if epoch == FINAL_EPOCH else sessions.next(key, epoch)
    wanted = {
        (Uuid(topic.topic_id), row.partition_index): row.acknowledgement_batches
        for topic in message.topics
        for row in topic.partitions
    }
    outcomes = await acknowledge(request, key.group_id, key.member_id, wanted, is_renew=message.is_renew_ack)
    if epoch == FINAL_EPOCH:
        await close_session(request, session)
    return _response(request, key.group_id, outcomes)


def _response(request: Request, group_id: str, outcomes: Outcomes) -> ShareAcknowledgeResponse:
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=request.broker.groups.share_settings_of(group_id).record_lock_duration_ms
    )
    topics: dict[Uuid, ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = {}
    moved: set[int] = set()
    for (topic_id, index), outcome in outcomes.items():
        row = ShareAcknowledgeResponse.PartitionData(partition_index=index)
        if outcome.error is not errors.NONE:
            row.error_code, row.error_message = outcome.error.code, outcome.message
        if outcome.error is errors.NOT_LEADER_OR_FOLLOWER:
            leader = leader_of(request, "", topic_id, index)
            if leader is not None:
                row.current_leader = ShareAcknowledgeResponse.LeaderIdAndEpoch(**leader._asdict())
                moved.add(leader.leader_id)
        if topic_id not in topics:
            topics[topic_id] = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse(topic_id=topic_id)
        topics[topic_id].partitions.append(row)
    response.responses = list(topics.values())
    response.node_endpoints = node_endpoints(request, moved, ShareAcknowledgeResponse.NodeEndpoint)
    return response


def _needs(request: GuardedRequest, message: ShareAcknowledgeRequest) -> None:
    """READ on the group; READ on each topic is checked with its acknowledgements."""
    request.require(Operation.READ, ResourceType.GROUP, message.group_id or "")


API: Final = Api(ApiKey.SHARE_ACKNOWLEDGE, handle, at=CLIENT, needs=_needs)
