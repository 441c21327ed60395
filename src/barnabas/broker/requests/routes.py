"""The tables of what a node serves: each API, its handler and its versions. ApiVersions announces just this.

Clients' listeners serve ``ROUTES``, controllers' listeners ``CONTROLLER_ROUTES``. What only the active controller can
answer is forwarded to it from a client's listener. ``docs/COMPATIBILITY.md`` is made from these tables. A handler that
is not finished is not in them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from barnabas.broker.controller.forwarding import forwarded
from barnabas.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    add_raft_voter,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    consumer_group_describe,
    consumer_group_heartbeat,
    controller_registration,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_controllers,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_quorum_epoch,
    end_txn,
    envelope,
    fetch,
    fetch_snapshot,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    metadata_fetch,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    remove_raft_voter,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    update_raft_voter,
    vote,
    write_txn_markers,
)
from barnabas.broker.settings.own import at_home
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages import request_of, response_of


@dataclass(frozen=True, slots=True)
class Route:
    key: ApiKey
    module: ModuleType
    handle: Callable[..., Any]
    request: type[Message]
    response: type[Message]
    versions: range
    announced_from: int  # what ApiVersions gives as the lowest version
    is_coroutine: bool
    is_forwarded: bool = False  # only the active controller can answer it

    @property
    def name(self) -> str:
        return self.key.name


def _route(
    key: ApiKey,
    module: ModuleType,
    *,
    handle: Callable[..., Any] | None = None,
    announced_from: int | None = None,
    is_forwarded: bool = False,
) -> Route:
    request = request_of(key)
    handle = handle or module.handle
    return Route(
        key=key,
        module=module,
        handle=handle,
        request=request,
        response=response_of(key),
        versions=request.versions,
        announced_from=request.versions[0] if announced_from is None else announced_from,
        is_coroutine=inspect.iscoroutinefunction(handle),
        is_forwarded=is_forwarded,
    )


def _forwarded(key: ApiKey, module: ModuleType) -> Route:
    """On a client's listener: answered by the active controller, wherever it is."""
    handle = forwarded(module.handle)
    if key in _AT_HOME_FIRST:
        handle = at_home(handle, module.refuse)
    return _route(key, module, handle=handle, is_forwarded=True)


def announced(routes: Mapping[int, Route]) -> tuple[tuple[ApiKey, int, int], ...]:
    """What ApiVersions says of a table."""
    return tuple((route.key, route.announced_from, route.versions[-1]) for route in routes.values())


_AT_HOME_FIRST: Final = (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
_FORWARDED: Final = {
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: delete_acls,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.ELECT_LEADERS: elect_leaders,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials,
    ApiKey.DESCRIBE_QUORUM: describe_quorum,
    ApiKey.UPDATE_FEATURES: update_features,
    ApiKey.UNREGISTER_BROKER: unregister_broker,
    ApiKey.ADD_RAFT_VOTER: add_raft_voter,
    ApiKey.REMOVE_RAFT_VOTER: remove_raft_voter,
}


ROUTES: Final[dict[int, Route]] = {
    route.key: route
    for route in (
        # librdkafka infers the message format from Produce's lowest version, so 0 is announced though 0–2 are refused.
        _route(ApiKey.PRODUCE, produce, announced_from=0),
        _route(ApiKey.FETCH, fetch),
        _route(ApiKey.LIST_OFFSETS, list_offsets),
        _route(ApiKey.METADATA, metadata),
        _route(ApiKey.OFFSET_COMMIT, offset_commit),
        _route(ApiKey.OFFSET_FETCH, offset_fetch),
        _route(ApiKey.FIND_COORDINATOR, find_coordinator),
        _route(ApiKey.JOIN_GROUP, join_group),
        _route(ApiKey.HEARTBEAT, heartbeat),
        _route(ApiKey.LEAVE_GROUP, leave_group),
        _route(ApiKey.SYNC_GROUP, sync_group),
        _route(ApiKey.DESCRIBE_GROUPS, describe_groups),
        _route(ApiKey.LIST_GROUPS, list_groups),
        _route(ApiKey.API_VERSIONS, api_versions),
        _route(ApiKey.SASL_HANDSHAKE, sasl_handshake),
        _route(ApiKey.SASL_AUTHENTICATE, sasl_authenticate),
        _route(ApiKey.DESCRIBE_CLIENT_QUOTAS, describe_client_quotas),
        _route(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, describe_user_scram_credentials),
        _route(ApiKey.DELETE_RECORDS, delete_records),
        _route(ApiKey.INIT_PRODUCER_ID, init_producer_id),
        _route(ApiKey.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch),
        _route(ApiKey.ADD_PARTITIONS_TO_TXN, add_partitions_to_txn),
        _route(ApiKey.ADD_OFFSETS_TO_TXN, add_offsets_to_txn),
        _route(ApiKey.END_TXN, end_txn),
        _route(ApiKey.WRITE_TXN_MARKERS, write_txn_markers),
        _route(ApiKey.TXN_OFFSET_COMMIT, txn_offset_commit),
        _route(ApiKey.DESCRIBE_ACLS, describe_acls),
        _route(ApiKey.DESCRIBE_CONFIGS, describe_configs),
        _route(ApiKey.ALTER_REPLICA_LOG_DIRS, alter_replica_log_dirs),
        _route(ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs),
        _route(ApiKey.DELETE_GROUPS, delete_groups),
        _route(ApiKey.OFFSET_DELETE, offset_delete),
        _route(ApiKey.DESCRIBE_CLUSTER, describe_cluster),
        _route(ApiKey.DESCRIBE_PRODUCERS, describe_producers),
        _route(ApiKey.DESCRIBE_TRANSACTIONS, describe_transactions),
        _route(ApiKey.LIST_TRANSACTIONS, list_transactions),
        _route(ApiKey.CONSUMER_GROUP_HEARTBEAT, consumer_group_heartbeat),
        _route(ApiKey.CONSUMER_GROUP_DESCRIBE, consumer_group_describe),
        _route(ApiKey.LIST_CONFIG_RESOURCES, list_config_resources),
        _route(ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions),
        *(_forwarded(key, module) for key, module in _FORWARDED.items()),
    )
}

CONTROLLER_ROUTES: Final[dict[int, Route]] = {
    route.key: route
    for route in (
        _route(ApiKey.FETCH, metadata_fetch),
        _route(ApiKey.API_VERSIONS, api_versions),
        _route(ApiKey.SASL_HANDSHAKE, sasl_handshake),
        _route(ApiKey.SASL_AUTHENTICATE, sasl_authenticate),
        _route(ApiKey.DESCRIBE_ACLS, describe_acls),
        _route(ApiKey.DESCRIBE_CLUSTER, describe_controllers),
        _route(ApiKey.VOTE, vote),
        _route(ApiKey.BEGIN_QUORUM_EPOCH, begin_quorum_epoch),
        _route(ApiKey.END_QUORUM_EPOCH, end_quorum_epoch),
        _route(ApiKey.ALTER_PARTITION, alter_partition),
        _route(ApiKey.FETCH_SNAPSHOT, fetch_snapshot),
        _route(ApiKey.BROKER_REGISTRATION, broker_registration),
        _route(ApiKey.BROKER_HEARTBEAT, broker_heartbeat),
        _route(ApiKey.ALLOCATE_PRODUCER_IDS, allocate_producer_ids),
        _route(ApiKey.CONTROLLER_REGISTRATION, controller_registration),
        _route(ApiKey.ASSIGN_REPLICAS_TO_DIRS, assign_replicas_to_dirs),
        _route(ApiKey.UPDATE_RAFT_VOTER, update_raft_voter),
        *(_route(key, module, is_forwarded=True) for key, module in _FORWARDED.items()),
    )
}
CONTROLLER_ROUTES[ApiKey.ENVELOPE] = _route(ApiKey.ENVELOPE, envelope, handle=envelope.opener(CONTROLLER_ROUTES))
