"""The APIs of the metadata quorum (KIP-595, KIP-853): the Raft driver answers all of them.

Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access.permissions import cluster
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.request import Request
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message


async def handle(request: Request, message: Message) -> Message:
    return await request.broker.raft.handle(message)


def _between_nodes(key: ApiKey, behaviour: str) -> Api:
    return Api(key, handle, at=CONTROLLER, needs=cluster(Operation.CLUSTER_ACTION), behaviour=behaviour)


def _for_administrators(key: ApiKey, behaviour: str) -> Api:
    return Api(
        key,
        handle,
        at=CONTROLLER,
        needs=cluster(Operation.ALTER),
        audit=lambda message: [str(message.voter_id)],
        is_forwarded=True,
        behaviour=behaviour,
    )


APIS: Final = (
    _between_nodes(
        ApiKey.FETCH,
        "only the metadata partition is served; a fetch acknowledges all records before its offset, and waits for new "
        "ones.",
    ),
    _between_nodes(ApiKey.VOTE, "version 2 has pre-votes; a vote is durable before it is answered."),
    _between_nodes(ApiKey.BEGIN_QUORUM_EPOCH, "the new leader of the quorum announces itself."),
    _between_nodes(ApiKey.END_QUORUM_EPOCH, "the leader of the quorum resigns and names its preferred successors."),
    _between_nodes(ApiKey.FETCH_SNAPSHOT, "a snapshot is downloaded in pieces of at most 1 MiB."),
    _between_nodes(ApiKey.UPDATE_RAFT_VOTER, "a voter updates its endpoints and its supported versions."),
    _for_administrators(
        ApiKey.ADD_RAFT_VOTER,
        "one change at a time; the replica must have caught up. The response is sent when the change is committed, or "
        "in version 1 as soon as it is written if the request asks for that.",
    ),
    _for_administrators(
        ApiKey.REMOVE_RAFT_VOTER,
        "one change at a time; a leader that is removed leads until the change is committed.",
    ),
)
