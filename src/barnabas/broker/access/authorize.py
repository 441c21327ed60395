"""What each API needs: the one table of operations and resources, and the check of every request against it.

Asked by the dispatcher before any handler, on brokers with an authorizer only. An API that is not in the table is
refused to everyone but super users of the cluster: whoever adds one has to say here what it needs. Rules for requests
of many rows are in ``authorize_rows`` and ``authorize_topics``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from barnabas.broker.access import audit
from barnabas.broker.access import authorize_rows as rows
from barnabas.broker.access import authorize_topics as topics
from barnabas.broker.access.guarded_request import ERRORS, GuardedRequest
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, WireError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersResponse

Check: TypeAlias = "Callable[[GuardedRequest, Any], Message | None]"

KEYS_SINCE: Final = 4  # FindCoordinator
BROKERS_SINCE: Final = 4  # AddPartitionsToTxn
CONSUMER: Final = -1
# What only nodes of the cluster ask each other.
BETWEEN_NODES: Final = (
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.UPDATE_RAFT_VOTER,
    ApiKey.BROKER_REGISTRATION,
    ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONTROLLER_REGISTRATION,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.ENVELOPE,
)
NO_ACKS: Final = 0


def check(request: Request, message: Message) -> Message | None:
    """None: the handler may go on with what is left of the request. A message: the answer. Or ApiError."""
    assert isinstance(request, GuardedRequest)
    rule = TABLE.get(request.header.api_key)
    if rule is None:
        request.require_cluster(Operation.ALL)
        return None
    try:
        return rule(request, message)
    finally:
        if request.asker.denied:
            audit.refused(request, request.asker)


# --- ways to check ----------------------------------------------------------------------------------------------------


def _free(request: GuardedRequest, message: Any) -> None:
    """Everybody may ask."""


def _cluster(*any_of: Operation) -> Check:
    def rule(request: GuardedRequest, message: Any) -> None:
        if not request.asker.may_cluster(*any_of):
            raise ApiError(errors.CLUSTER_AUTHORIZATION_FAILED)

    return rule


def _group(operation: Operation) -> Check:
    def rule(request: GuardedRequest, message: Any) -> None:
        request.require(operation, ResourceType.GROUP, message.group_id)

    return rule


def _each(spec: rows.Rows) -> Check:
    return spec.apply


def _listed(answers: str, name: str, kind: ResourceType) -> Check:
    """What may not be described is left out of a list."""

    def rule(request: GuardedRequest, message: Any) -> None:
        def amend(answer: Any) -> None:
            if kind is ResourceType.GROUP and request.asker.may_cluster(Operation.DESCRIBE):
                return
            found = getattr(answer, answers)
            may = request.asker.may
            setattr(answer, answers, [row for row in found if may(Operation.DESCRIBE, kind, getattr(row, name))])

        request.when_answered(amend)

    return rule


# --- rules of their own -----------------------------------------------------------------------------------------------


def _produce(request: GuardedRequest, message: Any) -> Message | None:
    whole = None
    if message.transactional_id is not None:
        whole = _problem(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
    asked = sum(len(topic.partition_data) for topic in message.topic_data)
    answer = rows.PRODUCE.apply(request, message, whole=whole)
    left = 0 if answer is not None else sum(len(topic.partition_data) for topic in message.topic_data)
    if message.acks == NO_ACKS and left < asked:
        raise Malformed("a batch sent with acks=0 was refused; a closed connection is the only way to say so")
    return answer


def _fetch(request: GuardedRequest, message: Any) -> None:
    """Each partition is checked when it is read, see ``fetch_rights``; who speaks as a broker must be one."""
    if message.replica_id != CONSUMER or message.replica_state.replica_id != CONSUMER:
        request.require_cluster(Operation.CLUSTER_ACTION)


def _problem(request: GuardedRequest, operation: Operation, kind: ResourceType, name: str) -> WireError | None:
    return None if request.asker.may(operation, kind, name) else ERRORS[kind]


def _offset_commit(request: GuardedRequest, message: Any) -> Message | None:
    whole = _problem(request, Operation.READ, ResourceType.GROUP, message.group_id)
    return rows.OFFSET_COMMIT.apply(request, message, whole=whole)


def _txn_offset_commit(request: GuardedRequest, message: Any) -> Message | None:
    whole = _problem(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
    whole = whole or _problem(request, Operation.READ, ResourceType.GROUP, message.group_id)
    return rows.TXN_OFFSET_COMMIT.apply(request, message, whole=whole)


def _offset_delete(request: GuardedRequest, message: Any) -> Message | None:
    request.require(Operation.DELETE, ResourceType.GROUP, message.group_id)
    return rows.OFFSET_DELETE.apply(request, message)


def _init_producer_id(request: GuardedRequest, message: Any) -> None:
    if message.transactional_id is not None:
        request.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
    elif not request.asker.may_any(Operation.WRITE, ResourceType.TOPIC):
        request.require_cluster(Operation.IDEMPOTENT_WRITE)


def _end_txn(request: GuardedRequest, message: Any) -> None:
    request.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)


def _add_offsets_to_txn(request: GuardedRequest, message: Any) -> None:
    _end_txn(request, message)
    request.require(Operation.READ, ResourceType.GROUP, message.group_id)


def _add_partitions_to_txn(request: GuardedRequest, message: Any) -> Message | None:
    if request.version >= BROKERS_SINCE:
        request.require_cluster(Operation.CLUSTER_ACTION)
        return None
    transactional_id = message.v3_and_below_transactional_id
    whole = _problem(request, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    wrong = {
        topic.name: whole or _problem(request, Operation.WRITE, ResourceType.TOPIC, topic.name)
        for topic in message.v3_and_below_topics
    }
    if not any(wrong.values()):
        return None
    # One that may not be written to fails all of them, as one that does not exist does.
    row = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    row(
                        partition_index=index,
                        partition_error_code=(wrong[topic.name] or errors.OPERATION_NOT_ATTEMPTED).code,
                    )
                    for index in topic.partitions
                ],
            )
            for topic in message.v3_and_below_topics
        ]
    )


def _write_txn_markers(request: GuardedRequest, message: Any) -> Message | None:
    if request.asker.may_cluster(Operation.CLUSTER_ACTION, Operation.ALTER):
        return None
    code = errors.CLUSTER_AUTHORIZATION_FAILED.code
    response = WriteTxnMarkersResponse
    return response(
        markers=[
            response.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    response.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            response.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in message.markers
        ]
    )


def _find_coordinator(request: GuardedRequest, message: Any) -> Message | None:
    kind = {0: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}.get(message.key_type)
    if kind is None:
        request.require_cluster(Operation.CLUSTER_ACTION)
        return None
    if request.version < KEYS_SINCE:
        request.require(Operation.DESCRIBE, kind, message.key)
        return None
    may = request.asker.may
    allowed, denied = rows.parted(message.coordinator_keys, lambda key: may(Operation.DESCRIBE, kind, key))
    refused = [
        FindCoordinatorResponse.Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=ERRORS[kind].code, error_message=ERRORS[kind].text
        )
        for key in denied
    ]
    return rows.split(request, message, "coordinator_keys", allowed, refused, FindCoordinatorResponse, "coordinators")


def _describe_transactions(request: GuardedRequest, message: Any) -> Message | None:
    answer = rows.DESCRIBE_TRANSACTIONS.apply(request, message)
    if answer is None:
        request.when_answered(lambda response: _hide_topics(request, response))
    return answer


def _hide_topics(request: GuardedRequest, response: Any) -> None:
    for state in response.transaction_states:
        may = request.asker.may
        state.topics = [row for row in state.topics if may(Operation.DESCRIBE, ResourceType.TOPIC, row.topic)]


def _consumer_group_heartbeat(request: GuardedRequest, message: Any) -> None:
    request.require(Operation.READ, ResourceType.GROUP, message.group_id)
    for name in message.subscribed_topic_names or ():
        request.require(Operation.DESCRIBE, ResourceType.TOPIC, name)


TABLE: Final[dict[int, Check]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _each(rows.LIST_OFFSETS),
    ApiKey.METADATA: topics.metadata,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: topics.offset_fetch,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: _group(Operation.READ),
    ApiKey.HEARTBEAT: _group(Operation.READ),
    ApiKey.LEAVE_GROUP: _group(Operation.READ),
    ApiKey.SYNC_GROUP: _group(Operation.READ),
    ApiKey.DESCRIBE_GROUPS: _each(rows.DESCRIBE_GROUPS),
    ApiKey.LIST_GROUPS: _listed("groups", "group_id", ResourceType.GROUP),
    ApiKey.SASL_HANDSHAKE: _free,
    ApiKey.API_VERSIONS: _free,
    ApiKey.CREATE_TOPICS: topics.create,
    ApiKey.DELETE_TOPICS: topics.delete,
    ApiKey.DELETE_RECORDS: _each(rows.DELETE_RECORDS),
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _each(rows.OFFSET_FOR_LEADER_EPOCH),
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: _add_offsets_to_txn,
    ApiKey.END_TXN: _end_txn,
    ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: _cluster(Operation.DESCRIBE),
    ApiKey.CREATE_ACLS: _cluster(Operation.ALTER),
    ApiKey.DELETE_ACLS: _cluster(Operation.ALTER),
    ApiKey.DESCRIBE_CONFIGS: topics.describe_settings,
    ApiKey.ALTER_CONFIGS: topics.alter_settings,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _cluster(Operation.ALTER),
    ApiKey.DESCRIBE_LOG_DIRS: _cluster(Operation.DESCRIBE),
    ApiKey.SASL_AUTHENTICATE: _free,
    ApiKey.CREATE_PARTITIONS: topics.grow,
    ApiKey.DELETE_GROUPS: _each(rows.DELETE_GROUPS),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: topics.alter_settings,
    ApiKey.OFFSET_DELETE: _offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _cluster(Operation.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CLIENT_QUOTAS: _cluster(Operation.ALTER_CONFIGS),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _cluster(Operation.DESCRIBE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _cluster(Operation.ALTER),
    ApiKey.DESCRIBE_QUORUM: _cluster(Operation.DESCRIBE),
    ApiKey.UPDATE_FEATURES: _cluster(Operation.ALTER),
    ApiKey.DESCRIBE_CLUSTER: _free,
    ApiKey.DESCRIBE_PRODUCERS: _each(rows.DESCRIBE_PRODUCERS),
    ApiKey.DESCRIBE_TRANSACTIONS: _describe_transactions,
    ApiKey.LIST_TRANSACTIONS: _listed("transaction_states", "transactional_id", ResourceType.TRANSACTIONAL_ID),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _each(rows.CONSUMER_GROUP_DESCRIBE),
    ApiKey.LIST_CONFIG_RESOURCES: _cluster(Operation.DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: topics.describe_partitions,
    ApiKey.ELECT_LEADERS: _cluster(Operation.ALTER),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _cluster(Operation.ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _cluster(Operation.DESCRIBE),
    ApiKey.UNREGISTER_BROKER: _cluster(Operation.ALTER),
    ApiKey.ADD_RAFT_VOTER: _cluster(Operation.ALTER),
    ApiKey.REMOVE_RAFT_VOTER: _cluster(Operation.ALTER),
    **dict.fromkeys(BETWEEN_NODES, _cluster(Operation.CLUSTER_ACTION)),
}
