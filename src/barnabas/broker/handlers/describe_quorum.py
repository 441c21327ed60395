"""DescribeQuorum: the leader, the voters and the observers of the metadata log, with their offsets.

Versions: 0–2.
Behaviour: only the metadata partition is known; any other partition is UNKNOWN_TOPIC_OR_PARTITION.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import METADATA_TOPIC, ZERO_UUID
from barnabas.raft.describe import QuorumDescription, ReplicaDescription
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

Row: TypeAlias = DescribeQuorumResponse.PartitionData

DETAILS_SINCE = 1
DIRECTORIES_SINCE = 2


def handle(request: Request, message: DescribeQuorumRequest) -> DescribeQuorumResponse:
    if not request.broker.raft.is_leader:
        raise ApiError(errors.NOT_LEADER_OR_FOLLOWER)
    quorum = request.broker.raft.describe()
    response = DescribeQuorumResponse(error_message=None)
    for topic in message.topics:
        rows = [_partition(request, quorum, topic.topic_name, asked.partition_index) for asked in topic.partitions]
        response.topics.append(DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=rows))
    if request.version >= DIRECTORIES_SINCE:
        response.nodes = [
            DescribeQuorumResponse.Node(
                node_id=voter.id,
                listeners=[
                    DescribeQuorumResponse.Listener(name=listener, host=host, port=port)
                    for listener, host, port in voter.endpoints
                ],
            )
            for voter in quorum.nodes
        ]
    return response


def _partition(request: Request, quorum: QuorumDescription, topic: str, index: int) -> Row:
    if topic != METADATA_TOPIC or index != 0:
        error = errors.UNKNOWN_TOPIC_OR_PARTITION
        return Row(partition_index=index, error_code=error.code, error_message=error.text)
    return Row(
        partition_index=index,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=_replicas(request, quorum.voters),
        observers=_replicas(request, quorum.observers),
    )


def _replicas(request: Request, replicas: Iterable[ReplicaDescription]) -> list[DescribeQuorumResponse.ReplicaState]:
    has_details = request.version >= DETAILS_SINCE
    return [
        DescribeQuorumResponse.ReplicaState(
            replica_id=replica.key.id,
            replica_directory_id=replica.key.directory_id if request.version >= DIRECTORIES_SINCE else ZERO_UUID,
            log_end_offset=replica.end_offset,
            last_fetch_timestamp=replica.last_fetch_ms if has_details else -1,
            last_caught_up_timestamp=replica.last_caught_up_ms if has_details else -1,
        )
        for replica in replicas
    ]


API: Final = Api(
    ApiKey.DESCRIBE_QUORUM,
    handle,
    at=CONTROLLER,
    portions=(Portions("topics.partitions", "topics.partitions"),),
    needs=permissions.cluster(Operation.DESCRIBE),
    is_forwarded=True,
)
