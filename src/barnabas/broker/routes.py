"""The table of what this broker serves: each API, its handler and its versions. ApiVersions announces just this.

``docs/COMPATIBILITY.md`` is made from this table. A handler that is not finished is not in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from barnabas.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    update_features,
    write_txn_markers,
)
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

    @property
    def name(self) -> str:
        return self.key.name


def _route(key: ApiKey, module: ModuleType, *, announced_from: int | None = None) -> Route:
    request = request_of(key)
    return Route(
        key=key,
        module=module,
        handle=module.handle,
        request=request,
        response=response_of(key),
        versions=request.versions,
        announced_from=request.versions[0] if announced_from is None else announced_from,
        is_coroutine=inspect.iscoroutinefunction(module.handle),
    )


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
        _route(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, describe_user_scram_credentials),
        _route(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, alter_user_scram_credentials),
        _route(ApiKey.CREATE_TOPICS, create_topics),
        _route(ApiKey.DELETE_TOPICS, delete_topics),
        _route(ApiKey.DELETE_RECORDS, delete_records),
        _route(ApiKey.INIT_PRODUCER_ID, init_producer_id),
        _route(ApiKey.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch),
        _route(ApiKey.ADD_PARTITIONS_TO_TXN, add_partitions_to_txn),
        _route(ApiKey.ADD_OFFSETS_TO_TXN, add_offsets_to_txn),
        _route(ApiKey.END_TXN, end_txn),
        _route(ApiKey.WRITE_TXN_MARKERS, write_txn_markers),
        _route(ApiKey.TXN_OFFSET_COMMIT, txn_offset_commit),
        _route(ApiKey.DESCRIBE_ACLS, describe_acls),
        _route(ApiKey.CREATE_ACLS, create_acls),
        _route(ApiKey.DELETE_ACLS, delete_acls),
        _route(ApiKey.DESCRIBE_CONFIGS, describe_configs),
        _route(ApiKey.ALTER_CONFIGS, alter_configs),
        _route(ApiKey.DESCRIBE_LOG_DIRS, describe_log_dirs),
        _route(ApiKey.CREATE_PARTITIONS, create_partitions),
        _route(ApiKey.DELETE_GROUPS, delete_groups),
        _route(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs),
        _route(ApiKey.OFFSET_DELETE, offset_delete),
        _route(ApiKey.DESCRIBE_QUORUM, describe_quorum),
        _route(ApiKey.UPDATE_FEATURES, update_features),
        _route(ApiKey.DESCRIBE_CLUSTER, describe_cluster),
        _route(ApiKey.DESCRIBE_PRODUCERS, describe_producers),
        _route(ApiKey.DESCRIBE_TRANSACTIONS, describe_transactions),
        _route(ApiKey.LIST_TRANSACTIONS, list_transactions),
        _route(ApiKey.CONSUMER_GROUP_HEARTBEAT, consumer_group_heartbeat),
        _route(ApiKey.CONSUMER_GROUP_DESCRIBE, consumer_group_describe),
        _route(ApiKey.LIST_CONFIG_RESOURCES, list_config_resources),
        _route(ApiKey.DESCRIBE_TOPIC_PARTITIONS, describe_topic_partitions),
    )
}
