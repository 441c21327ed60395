"""What each API of share groups needs, as Kafka publishes it: one request of each, for ``rights_table``."""

from __future__ import annotations

from typing import Any

from rights import GROUP, C, G, May

from barnabas.model.ids import Uuid
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest


def _about_state(request: Any) -> Message:
    """A request to the share coordinator about a share-partition that does not exist."""
    (topics,) = (field for field in request.fields if field.name == "topics")
    row = topics.type.element.target(topic_id=Uuid(bytes(16)), partitions=[request.PartitionData(partition=0)])
    made: Message = request(group_id=GROUP, topics=[row])
    return made


def share_requests() -> dict[ApiKey, Message]:
    return {
        ApiKey.SHARE_GROUP_HEARTBEAT: ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=-1),
        ApiKey.SHARE_GROUP_DESCRIBE: ShareGroupDescribeRequest(group_ids=[GROUP]),
        ApiKey.SHARE_FETCH: ShareFetchRequest(group_id=GROUP, member_id="m", share_session_epoch=1),
        ApiKey.SHARE_ACKNOWLEDGE: ShareAcknowledgeRequest(group_id=GROUP, member_id="m", share_session_epoch=1),
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: _about_state(InitializeShareGroupStateRequest),
        ApiKey.READ_SHARE_GROUP_STATE: _about_state(ReadShareGroupStateRequest),
        ApiKey.WRITE_SHARE_GROUP_STATE: _about_state(WriteShareGroupStateRequest),
        ApiKey.DELETE_SHARE_GROUP_STATE: _about_state(DeleteShareGroupStateRequest),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _about_state(ReadShareGroupStateSummaryRequest),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP)]
        ),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: AlterShareGroupOffsetsRequest(group_id=GROUP),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: DeleteShareGroupOffsetsRequest(group_id=GROUP),
    }


SHARE_NEEDS: dict[ApiKey, list[tuple[Operation, ResourceType]]] = {
    ApiKey.SHARE_GROUP_HEARTBEAT: [(May.READ, G)],
    ApiKey.SHARE_GROUP_DESCRIBE: [(May.DESCRIBE, G)],
    ApiKey.SHARE_FETCH: [(May.READ, G)],
    ApiKey.SHARE_ACKNOWLEDGE: [(May.READ, G)],
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: [(May.CLUSTER_ACTION, C)],
    ApiKey.READ_SHARE_GROUP_STATE: [(May.CLUSTER_ACTION, C)],
    ApiKey.WRITE_SHARE_GROUP_STATE: [(May.CLUSTER_ACTION, C)],
    ApiKey.DELETE_SHARE_GROUP_STATE: [(May.CLUSTER_ACTION, C)],
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: [(May.CLUSTER_ACTION, C)],
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: [(May.DESCRIBE, G)],
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: [(May.READ, G)],
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: [(May.DELETE, G)],
}
