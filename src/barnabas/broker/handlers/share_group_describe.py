"""ShareGroupDescribe: the state and the members of share groups.

Versions: 1.
Behaviour: as Kafka's. Each group is answered or refused by itself; a group of another type is not found.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.access.authorized_operations import authorized_operations
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.request import Request
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.share.describe import not_found
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse


async def handle(request: Request, message: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    response = ShareGroupDescribeResponse()
    for group_id in dict.fromkeys(message.group_ids):
        one = GroupRequest(ShareGroupDescribeRequest(group_ids=[group_id]), request.version)
        try:
            if not group_id:
                raise ApiError(errors.INVALID_GROUP_ID)
            response.groups += await request.broker.groups.ask(group_id, one)
        except ApiError as error:
            response.groups.append(not_found(group_id, error))
    if message.include_authorized_operations:
        for group in response.groups:
            if group.error_code == errors.NONE.code:
                group.authorized_operations = authorized_operations(request, ResourceType.GROUP, group.group_id)
    return response


_ROWS: Final = permissions.Rows(
    "group_ids",
    Operation.DESCRIBE,
    ResourceType.GROUP,
    ShareGroupDescribeResponse,
    "groups",
    lambda row, error: ShareGroupDescribeResponse.DescribedGroup(group_id=row, error_code=error.code),
    permissions.itself,
)


def _needs(request: GuardedRequest, message: ShareGroupDescribeRequest) -> Message | None:
    """DESCRIBE on each group, and on the topics that its members read."""
    answer = _ROWS.check(request, message)
    if answer is None:
        request.when_answered(lambda response: _hide_groups(request, response))
    return answer


def _hide_groups(request: GuardedRequest, response: ShareGroupDescribeResponse) -> None:
    """Refuse a group as a whole if its members read topics that the client may not describe."""
    for place, group in enumerate(response.groups):
        names = {row.topic_name for member in group.members for row in member.assignment.topic_partitions}
        if not all(permissions.may_describe_topic(request, name) for name in sorted(names)):
            response.groups[place] = ShareGroupDescribeResponse.DescribedGroup(
                group_id=group.group_id,
                error_code=errors.TOPIC_AUTHORIZATION_FAILED.code,
                error_message="members of the group read topics that the client may not describe",
            )


API: Final = Api(ApiKey.SHARE_GROUP_DESCRIBE, handle, at=CLIENT, needs=_needs)
