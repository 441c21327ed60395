"""Every error of Kafka's protocol as a row of data, and the exception that carries one.

Protocol errors are rows, never bare exceptions: ``raise ApiError(NOT_LEADER_OR_FOLLOWER)``. The edge (a handler, a
client's call) turns an :class:`ApiError` into a code and back; nothing between the edges looks at numbers.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class WireError(NamedTuple):
    code: int
    name: str
    retriable: bool
    text: str

    def __str__(self) -> str:
        return f"{self.name} ({self.code}): {self.text}"


class BarnabasError(Exception):
    """Whatever Barnabas raises on purpose; ``retriable`` says whether the same call may succeed later."""

    retriable = False


class ApiError(BarnabasError):
    """A row of the table below, with the sentence that fits this occasion."""

    def __init__(self, error: WireError, message: str | None = None) -> None:
        super().__init__(message or error.text)
        self.error = error
        self.message = message or error.text

    @property
    def retriable(self) -> bool:  # type: ignore[override]
        return self.error.retriable

    def __str__(self) -> str:
        return f"{self.error.name}: {self.message}"


class Malformed(BarnabasError):
    """Bytes that are not what their format says they are: the peer or the file is wrong, not us."""


class CorruptBatch(Malformed):
    """A record batch that fails its checksum or its structure."""


_ROWS: dict[int, WireError] = {}


def _row(code: int, name: str, text: str, *, retriable: bool = False) -> WireError:
    row = WireError(code, name, retriable, text)
    assert code not in _ROWS, name
    _ROWS[code] = row
    return row


def error_of(code: int) -> WireError:
    """The row of a code; a code from the future is an unknown server error that keeps its number."""
    return _ROWS.get(code) or WireError(
        code, f"UNKNOWN_ERROR_{code}", False, "The peer answered with an unknown error."
    )


def all_errors() -> tuple[WireError, ...]:
    return tuple(_ROWS.values())


UNKNOWN_SERVER_ERROR: Final = _row(-1, "UNKNOWN_SERVER_ERROR", "Something went wrong on the broker; its log says what.")
NONE: Final = _row(0, "NONE", "No error.")
OFFSET_OUT_OF_RANGE: Final = _row(1, "OFFSET_OUT_OF_RANGE", "The offset is outside of what the log holds.")
CORRUPT_MESSAGE: Final = _row(2, "CORRUPT_MESSAGE", "The batch fails its checksum or its structure.", retriable=True)
UNKNOWN_TOPIC_OR_PARTITION: Final = _row(
    3, "UNKNOWN_TOPIC_OR_PARTITION", "This broker knows no such topic or partition.", retriable=True
)
INVALID_FETCH_SIZE: Final = _row(4, "INVALID_FETCH_SIZE", "The fetch size makes no sense.")
LEADER_NOT_AVAILABLE: Final = _row(
    5, "LEADER_NOT_AVAILABLE", "The partition has no leader at the moment.", retriable=True
)
NOT_LEADER_OR_FOLLOWER: Final = _row(
    6,
    "NOT_LEADER_OR_FOLLOWER",
    "This broker neither leads nor follows the partition as the request needs.",
    retriable=True,
)
REQUEST_TIMED_OUT: Final = _row(7, "REQUEST_TIMED_OUT", "The request was not done within its time-out.", retriable=True)
BROKER_NOT_AVAILABLE: Final = _row(8, "BROKER_NOT_AVAILABLE", "The broker cannot be reached.")
REPLICA_NOT_AVAILABLE: Final = _row(
    9, "REPLICA_NOT_AVAILABLE", "This broker has no replica of the partition.", retriable=True
)
MESSAGE_TOO_LARGE: Final = _row(10, "MESSAGE_TOO_LARGE", "The batch is larger than max.message.bytes allows.")
STALE_CONTROLLER_EPOCH: Final = _row(11, "STALE_CONTROLLER_EPOCH", "The controller has moved.")
OFFSET_METADATA_TOO_LARGE: Final = _row(
    12, "OFFSET_METADATA_TOO_LARGE", "The metadata of the offset commit is too large."
)
NETWORK_EXCEPTION: Final = _row(13, "NETWORK_EXCEPTION", "The connection ended before an answer came.", retriable=True)
COORDINATOR_LOAD_IN_PROGRESS: Final = _row(
    14, "COORDINATOR_LOAD_IN_PROGRESS", "The coordinator is still loading its state.", retriable=True
)
COORDINATOR_NOT_AVAILABLE: Final = _row(
    15, "COORDINATOR_NOT_AVAILABLE", "There is no coordinator to ask at the moment.", retriable=True
)
NOT_COORDINATOR: Final = _row(16, "NOT_COORDINATOR", "Another broker is the coordinator.", retriable=True)
INVALID_TOPIC_EXCEPTION: Final = _row(17, "INVALID_TOPIC_EXCEPTION", "The topic's name is not allowed here.")
RECORD_LIST_TOO_LARGE: Final = _row(18, "RECORD_LIST_TOO_LARGE", "The batch is larger than a segment.")
NOT_ENOUGH_REPLICAS: Final = _row(
    19,
    "NOT_ENOUGH_REPLICAS",
    "Fewer replicas are in sync than min.insync.replicas asks; nothing was written.",
    retriable=True,
)
NOT_ENOUGH_REPLICAS_AFTER_APPEND: Final = _row(
    20,
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "The records were written, but too few replicas were in sync to keep them safe.",
    retriable=True,
)
INVALID_REQUIRED_ACKS: Final = _row(21, "INVALID_REQUIRED_ACKS", "acks must be -1, 0 or 1.")
ILLEGAL_GENERATION: Final = _row(22, "ILLEGAL_GENERATION", "The group is not in that generation.")
INCONSISTENT_GROUP_PROTOCOL: Final = _row(
    23, "INCONSISTENT_GROUP_PROTOCOL", "The member has no protocol in common with the group."
)
INVALID_GROUP_ID: Final = _row(24, "INVALID_GROUP_ID", "A group cannot be called that.")
UNKNOWN_MEMBER_ID: Final = _row(25, "UNKNOWN_MEMBER_ID", "The coordinator does not know this member.")
INVALID_SESSION_TIMEOUT: Final = _row(
    26, "INVALID_SESSION_TIMEOUT", "The session time-out is outside of the broker's limits."
)
REBALANCE_IN_PROGRESS: Final = _row(27, "REBALANCE_IN_PROGRESS", "The members of the group have changed; join again.")
INVALID_COMMIT_OFFSET_SIZE: Final = _row(28, "INVALID_COMMIT_OFFSET_SIZE", "The offset commit is too large.")
TOPIC_AUTHORIZATION_FAILED: Final = _row(29, "TOPIC_AUTHORIZATION_FAILED", "Not authorised for the topic.")
GROUP_AUTHORIZATION_FAILED: Final = _row(30, "GROUP_AUTHORIZATION_FAILED", "Not authorised for the group.")
CLUSTER_AUTHORIZATION_FAILED: Final = _row(31, "CLUSTER_AUTHORIZATION_FAILED", "Not authorised for the cluster.")
INVALID_TIMESTAMP: Final = _row(32, "INVALID_TIMESTAMP", "A record's timestamp is out of the accepted range.")
UNSUPPORTED_SASL_MECHANISM: Final = _row(
    33, "UNSUPPORTED_SASL_MECHANISM", "The broker does not offer that SASL mechanism."
)
ILLEGAL_SASL_STATE: Final = _row(
    34, "ILLEGAL_SASL_STATE", "The request does not fit the connection's state of sign-in."
)
UNSUPPORTED_VERSION: Final = _row(35, "UNSUPPORTED_VERSION", "Requests of this version are not served here.")
TOPIC_ALREADY_EXISTS: Final = _row(36, "TOPIC_ALREADY_EXISTS", "A topic of that name exists already.")
INVALID_PARTITIONS: Final = _row(37, "INVALID_PARTITIONS", "The number of partitions is not valid.")
INVALID_REPLICATION_FACTOR: Final = _row(
    38, "INVALID_REPLICATION_FACTOR", "A partition cannot have that many replicas here."
)
INVALID_REPLICA_ASSIGNMENT: Final = _row(39, "INVALID_REPLICA_ASSIGNMENT", "The replica assignment is not valid.")
INVALID_CONFIG: Final = _row(40, "INVALID_CONFIG", "The configuration is not valid.")
NOT_CONTROLLER: Final = _row(
    41, "NOT_CONTROLLER", "The request is for the active controller, which this node is not.", retriable=True
)
INVALID_REQUEST: Final = _row(42, "INVALID_REQUEST", "The request is not valid.")
UNSUPPORTED_FOR_MESSAGE_FORMAT: Final = _row(
    43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "The log is in a format that cannot do this."
)
POLICY_VIOLATION: Final = _row(44, "POLICY_VIOLATION", "The request violates the configured policy.")
OUT_OF_ORDER_SEQUENCE_NUMBER: Final = _row(
    45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "The producer's sequence number is not the next one."
)
DUPLICATE_SEQUENCE_NUMBER: Final = _row(
    46, "DUPLICATE_SEQUENCE_NUMBER", "The producer's sequence number was seen before."
)
INVALID_PRODUCER_EPOCH: Final = _row(47, "INVALID_PRODUCER_EPOCH", "The producer's epoch is old.")
INVALID_TXN_STATE: Final = _row(48, "INVALID_TXN_STATE", "The transaction's state does not allow that.")
INVALID_PRODUCER_ID_MAPPING: Final = _row(
    49, "INVALID_PRODUCER_ID_MAPPING", "The producer id does not belong to the transactional id."
)
INVALID_TRANSACTION_TIMEOUT: Final = _row(
    50, "INVALID_TRANSACTION_TIMEOUT", "The transaction time-out is above transaction.max.timeout.ms."
)
CONCURRENT_TRANSACTIONS: Final = _row(
    51, "CONCURRENT_TRANSACTIONS", "The transaction is still busy with an earlier request.", retriable=True
)
TRANSACTION_COORDINATOR_FENCED: Final = _row(
    52, "TRANSACTION_COORDINATOR_FENCED", "The coordinator that wrote the marker is no longer in charge."
)
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final = _row(
    53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "Not authorised for the transactional id."
)
SECURITY_DISABLED: Final = _row(
    54, "SECURITY_DISABLED", "No rights are checked here, as authorizer.class.name is not set."
)
OPERATION_NOT_ATTEMPTED: Final = _row(
    55, "OPERATION_NOT_ATTEMPTED", "An earlier failure kept this operation from being tried."
)
KAFKA_STORAGE_ERROR: Final = _row(56, "KAFKA_STORAGE_ERROR", "The broker's disk failed.", retriable=True)
LOG_DIR_NOT_FOUND: Final = _row(57, "LOG_DIR_NOT_FOUND", "The broker has no such log directory.")
SASL_AUTHENTICATION_FAILED: Final = _row(58, "SASL_AUTHENTICATION_FAILED", "Sign-in failed.")
UNKNOWN_PRODUCER_ID: Final = _row(59, "UNKNOWN_PRODUCER_ID", "The broker has no state for the producer id.")
REASSIGNMENT_IN_PROGRESS: Final = _row(60, "REASSIGNMENT_IN_PROGRESS", "The partition is being reassigned.")
DELEGATION_TOKEN_AUTH_DISABLED: Final = _row(
    61, "DELEGATION_TOKEN_AUTH_DISABLED", "Delegation tokens are switched off."
)
DELEGATION_TOKEN_NOT_FOUND: Final = _row(62, "DELEGATION_TOKEN_NOT_FOUND", "The delegation token is not known.")
DELEGATION_TOKEN_OWNER_MISMATCH: Final = _row(
    63, "DELEGATION_TOKEN_OWNER_MISMATCH", "The principal does not own the delegation token."
)
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: Final = _row(
    64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", "Delegation tokens cannot be asked for on this connection."
)
DELEGATION_TOKEN_AUTHORIZATION_FAILED: Final = _row(
    65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", "Not authorised for the delegation token."
)
DELEGATION_TOKEN_EXPIRED: Final = _row(66, "DELEGATION_TOKEN_EXPIRED", "The delegation token has expired.")
INVALID_PRINCIPAL_TYPE: Final = _row(67, "INVALID_PRINCIPAL_TYPE", "The type of principal is not supported.")
NON_EMPTY_GROUP: Final = _row(68, "NON_EMPTY_GROUP", "The group still has members.")
GROUP_ID_NOT_FOUND: Final = _row(69, "GROUP_ID_NOT_FOUND", "There is no such group.")
FETCH_SESSION_ID_NOT_FOUND: Final = _row(
    70, "FETCH_SESSION_ID_NOT_FOUND", "The fetch session is not known; start a new one.", retriable=True
)
INVALID_FETCH_SESSION_EPOCH: Final = _row(
    71, "INVALID_FETCH_SESSION_EPOCH", "The fetch session's epoch is not the next one.", retriable=True
)
LISTENER_NOT_FOUND: Final = _row(72, "LISTENER_NOT_FOUND", "The leader has no listener of this name.", retriable=True)
TOPIC_DELETION_DISABLED: Final = _row(73, "TOPIC_DELETION_DISABLED", "Deleting topics is switched off.")
FENCED_LEADER_EPOCH: Final = _row(
    74, "FENCED_LEADER_EPOCH", "The request was made in an earlier leader epoch.", retriable=True
)
UNKNOWN_LEADER_EPOCH: Final = _row(
    75,
    "UNKNOWN_LEADER_EPOCH",
    "The request was made in a leader epoch that this broker has not heard of yet.",
    retriable=True,
)
UNSUPPORTED_COMPRESSION_TYPE: Final = _row(
    76, "UNSUPPORTED_COMPRESSION_TYPE", "The data is compressed in a way that the client does not know."
)
STALE_BROKER_EPOCH: Final = _row(77, "STALE_BROKER_EPOCH", "The broker has registered again since.")
OFFSET_NOT_AVAILABLE: Final = _row(
    78, "OFFSET_NOT_AVAILABLE", "A new leader does not know yet how far the log may be read.", retriable=True
)
MEMBER_ID_REQUIRED: Final = _row(79, "MEMBER_ID_REQUIRED", "Join again with the member id in this answer.")
PREFERRED_LEADER_NOT_AVAILABLE: Final = _row(
    80, "PREFERRED_LEADER_NOT_AVAILABLE", "The first of the replicas cannot lead at the moment.", retriable=True
)
GROUP_MAX_SIZE_REACHED: Final = _row(81, "GROUP_MAX_SIZE_REACHED", "The group is full.")
FENCED_INSTANCE_ID: Final = _row(82, "FENCED_INSTANCE_ID", "Another member has taken over this group.instance.id.")
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = _row(
    83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "None of the replicas may lead at the moment.", retriable=True
)
ELECTION_NOT_NEEDED: Final = _row(
    84, "ELECTION_NOT_NEEDED", "The partition has the right leader already.", retriable=True
)
NO_REASSIGNMENT_IN_PROGRESS: Final = _row(85, "NO_REASSIGNMENT_IN_PROGRESS", "The partition is not being reassigned.")
GROUP_SUBSCRIBED_TO_TOPIC: Final = _row(86, "GROUP_SUBSCRIBED_TO_TOPIC", "The group is still subscribed to the topic.")
INVALID_RECORD: Final = _row(87, "INVALID_RECORD", "A record does not satisfy the topic's rules.")
UNSTABLE_OFFSET_COMMIT: Final = _row(
    88, "UNSTABLE_OFFSET_COMMIT", "A transaction holds offsets of this group open.", retriable=True
)
THROTTLING_QUOTA_EXCEEDED: Final = _row(
    89, "THROTTLING_QUOTA_EXCEEDED", "The quota is exceeded; wait as long as the answer says.", retriable=True
)
PRODUCER_FENCED: Final = _row(90, "PRODUCER_FENCED", "A newer producer has the same transactional id.")
RESOURCE_NOT_FOUND: Final = _row(91, "RESOURCE_NOT_FOUND", "The resource does not exist.")
DUPLICATE_RESOURCE: Final = _row(92, "DUPLICATE_RESOURCE", "The request names the same resource twice.")
UNACCEPTABLE_CREDENTIAL: Final = _row(93, "UNACCEPTABLE_CREDENTIAL", "The credential does not meet the broker's rules.")
INCONSISTENT_VOTER_SET: Final = _row(94, "INCONSISTENT_VOTER_SET", "The sender or the receiver is none of the voters.")
INVALID_UPDATE_VERSION: Final = _row(95, "INVALID_UPDATE_VERSION", "The version of the update is not valid.")
FEATURE_UPDATE_FAILED: Final = _row(96, "FEATURE_UPDATE_FAILED", "The features could not be updated.")
PRINCIPAL_DESERIALIZATION_FAILURE: Final = _row(
    97, "PRINCIPAL_DESERIALIZATION_FAILURE", "The forwarded principal could not be read."
)
SNAPSHOT_NOT_FOUND: Final = _row(98, "SNAPSHOT_NOT_FOUND", "The snapshot does not exist.")
POSITION_OUT_OF_RANGE: Final = _row(99, "POSITION_OUT_OF_RANGE", "The position is outside of the snapshot.")
UNKNOWN_TOPIC_ID: Final = _row(100, "UNKNOWN_TOPIC_ID", "This broker knows no topic of that id.", retriable=True)
DUPLICATE_BROKER_REGISTRATION: Final = _row(
    101, "DUPLICATE_BROKER_REGISTRATION", "A live broker has registered under this id."
)
BROKER_ID_NOT_REGISTERED: Final = _row(102, "BROKER_ID_NOT_REGISTERED", "No broker is registered under this id.")
INCONSISTENT_TOPIC_ID: Final = _row(
    103, "INCONSISTENT_TOPIC_ID", "The log belongs to a topic of another id.", retriable=True
)
INCONSISTENT_CLUSTER_ID: Final = _row(104, "INCONSISTENT_CLUSTER_ID", "The request is meant for another cluster.")
TRANSACTIONAL_ID_NOT_FOUND: Final = _row(105, "TRANSACTIONAL_ID_NOT_FOUND", "The transactional id is not known.")
FETCH_SESSION_TOPIC_ID_ERROR: Final = _row(
    106, "FETCH_SESSION_TOPIC_ID_ERROR", "The fetch session mixes topic ids and names.", retriable=True
)
INELIGIBLE_REPLICA: Final = _row(107, "INELIGIBLE_REPLICA", "The new ISR names a replica that may not join.")
NEW_LEADER_ELECTED: Final = _row(108, "NEW_LEADER_ELECTED", "The change was made and gave the partition a new leader.")
OFFSET_MOVED_TO_TIERED_STORAGE: Final = _row(
    109, "OFFSET_MOVED_TO_TIERED_STORAGE", "The offset lies in tiered storage."
)
FENCED_MEMBER_EPOCH: Final = _row(
    110, "FENCED_MEMBER_EPOCH", "The member's epoch is fenced; give up all partitions and join again."
)
UNRELEASED_INSTANCE_ID: Final = _row(111, "UNRELEASED_INSTANCE_ID", "Another member still uses the instance id.")
UNSUPPORTED_ASSIGNOR: Final = _row(112, "UNSUPPORTED_ASSIGNOR", "The group does not support the assignor.")
STALE_MEMBER_EPOCH: Final = _row(
    113, "STALE_MEMBER_EPOCH", "The member's epoch is stale; try again after the next heartbeat."
)
MISMATCHED_ENDPOINT_TYPE: Final = _row(
    114, "MISMATCHED_ENDPOINT_TYPE", "The request came to the wrong kind of endpoint."
)
UNSUPPORTED_ENDPOINT_TYPE: Final = _row(115, "UNSUPPORTED_ENDPOINT_TYPE", "That kind of endpoint is not supported.")
UNKNOWN_CONTROLLER_ID: Final = _row(116, "UNKNOWN_CONTROLLER_ID", "There is no controller of that id.")
UNKNOWN_SUBSCRIPTION_ID: Final = _row(117, "UNKNOWN_SUBSCRIPTION_ID", "The telemetry subscription is not known.")
TELEMETRY_TOO_LARGE: Final = _row(118, "TELEMETRY_TOO_LARGE", "The telemetry is larger than the broker accepts.")
INVALID_REGISTRATION: Final = _row(
    119, "INVALID_REGISTRATION", "The controller does not take the broker in as it presents itself."
)
TRANSACTION_ABORTABLE: Final = _row(
    120, "TRANSACTION_ABORTABLE", "The transaction must be aborted; the producer may then go on."
)
INVALID_RECORD_STATE: Final = _row(
    121, "INVALID_RECORD_STATE", "The record's state does not allow the acknowledgement."
)
SHARE_SESSION_NOT_FOUND: Final = _row(122, "SHARE_SESSION_NOT_FOUND", "The share session is not known.", retriable=True)
INVALID_SHARE_SESSION_EPOCH: Final = _row(
    123, "INVALID_SHARE_SESSION_EPOCH", "The share session's epoch is not the next one.", retriable=True
)
FENCED_STATE_EPOCH: Final = _row(124, "FENCED_STATE_EPOCH", "The share group's state epoch does not match.")
INVALID_VOTER_KEY: Final = _row(125, "INVALID_VOTER_KEY", "The voter key is not the receiver's.")
DUPLICATE_VOTER: Final = _row(126, "DUPLICATE_VOTER", "There is such a voter already.")
VOTER_NOT_FOUND: Final = _row(127, "VOTER_NOT_FOUND", "There is no such voter.")
INVALID_REGULAR_EXPRESSION: Final = _row(128, "INVALID_REGULAR_EXPRESSION", "The pattern cannot be read.")
REBOOTSTRAP_REQUIRED: Final = _row(
    129, "REBOOTSTRAP_REQUIRED", "The client's picture of the cluster is stale; bootstrap again."
)
STREAMS_INVALID_TOPOLOGY: Final = _row(130, "STREAMS_INVALID_TOPOLOGY", "The topology is not valid.")
STREAMS_INVALID_TOPOLOGY_EPOCH: Final = _row(131, "STREAMS_INVALID_TOPOLOGY_EPOCH", "The topology epoch is not valid.")
STREAMS_TOPOLOGY_FENCED: Final = _row(132, "STREAMS_TOPOLOGY_FENCED", "The topology epoch is out of date.")
SHARE_SESSION_LIMIT_REACHED: Final = _row(
    133, "SHARE_SESSION_LIMIT_REACHED", "The broker keeps no more share sessions.", retriable=True
)
