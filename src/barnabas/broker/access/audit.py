"""Who did what: a line for every change that an administrator asked for, and for every access that was refused.

The lines are those of the logger ``barnabas.audit`` and go wherever its level lets them. They name topics, groups,
settings and users, never the value of a setting or anything of a password. The dispatcher calls this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from barnabas.broker.access.authorizer import Asker
from barnabas.broker.access.guarded_request import principal_of
from barnabas.broker.requests.request import Request
from barnabas.model.errors import error_of
from barnabas.observe.log import logger
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message

log = logger("audit")

NAMES_MAX: Final = 20
_CODES: Final = ("error_code", "partition_error_code")


def _topics(message: Any) -> Iterable[str]:
    return [row.name or str(row.topic_id) if hasattr(row, "topic_id") else row.name for row in message.topics]


def _settings(message: Any) -> Iterable[str]:
    return [
        f"{row.resource_type}/{row.resource_name}:{','.join(config.name for config in row.configs)}"
        for row in message.resources
    ]


def _rules(message: Any) -> Iterable[str]:
    return [
        f"{Permission.get(row.permission_type, row.permission_type)} {row.principal} {_name(Operation, row.operation)} "
        f"{_name(ResourceType, row.resource_type)}:{row.resource_name}"
        for row in message.creations
    ]


Permission: Final = {2: "DENY", 3: "ALLOW"}


def _filters(message: Any) -> Iterable[str]:
    return [
        f"{row.principal_filter or '*'} {_name(Operation, row.operation)} "
        f"{_name(ResourceType, row.resource_type_filter)}:{row.resource_name_filter or '*'}"
        for row in message.filters
    ]


def _users(message: Any) -> Iterable[str]:
    return [*(f"-{row.name}" for row in message.deletions), *(f"+{row.name}" for row in message.upsertions)]


def _quotas(message: Any) -> Iterable[str]:
    return [
        ",".join(f"{part.entity_type}={part.entity_name}" for part in row.entity)
        + ":"
        + ",".join(change.key for change in row.ops)
        for row in message.entries
    ]


def _deleted(message: Any) -> Iterable[str]:
    return [*message.topic_names, *_topics(message)]


# The changes that are told, and what each is about.
CHANGES: Final[dict[int, Callable[[Any], Iterable[str]]]] = {
    ApiKey.CREATE_TOPICS: _topics,
    ApiKey.DELETE_TOPICS: _deleted,
    ApiKey.CREATE_PARTITIONS: _topics,
    ApiKey.DELETE_RECORDS: _topics,
    ApiKey.ALTER_CONFIGS: _settings,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _settings,
    ApiKey.CREATE_ACLS: _rules,
    ApiKey.DELETE_ACLS: _filters,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _users,
    ApiKey.ALTER_CLIENT_QUOTAS: _quotas,
    ApiKey.DELETE_GROUPS: lambda message: message.groups_names,
    ApiKey.OFFSET_DELETE: lambda message: [message.group_id],
    ApiKey.UPDATE_FEATURES: lambda message: [row.feature for row in message.feature_updates],
    ApiKey.ELECT_LEADERS: lambda message: [row.topic for row in message.topic_partitions or ()],
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _topics,
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda message: [row.name for each in message.dirs for row in each.topics],
    ApiKey.UNREGISTER_BROKER: lambda message: [str(message.broker_id)],
    ApiKey.ADD_RAFT_VOTER: lambda message: [str(message.voter_id)],
    ApiKey.REMOVE_RAFT_VOTER: lambda message: [str(message.voter_id)],
}  # fmt: skip


def changed(request: Request, message: Message, response: Message | None) -> None:
    """After the controller, or whoever it was, has answered."""
    names = list(CHANGES[request.header.api_key](message))
    codes = sorted(code for code in _codes(response) if code)
    log.info(
        "change",
        api=ApiKey(request.header.api_key).name,
        principal=principal_of(request.broker, request.connection),
        peer=request.connection.peer[0],
        client=request.header.client_id,
        of=_joined(names),
        failed=",".join(error_of(code).name for code in codes) or "no",
    )


def refused(request: Request, asker: Asker) -> None:
    """What somebody asked for and may not have."""
    log.info(
        "access refused",
        api=ApiKey(request.header.api_key).name,
        principal=asker.principal,
        peer=asker.host,
        client=request.header.client_id,
        rights=_joined(
            [f"{_name(Operation, each)} {_name(ResourceType, kind)}:{name}" for each, kind, name in asker.denied]
        ),
    )


def _codes(value: Any) -> set[int]:
    """Every error code anywhere in an answer."""
    found: set[int] = set()
    if isinstance(value, list):
        for each in value:
            found |= _codes(each)
    elif isinstance(value, Message):
        fields: Iterable[str] = value.__slots__
        for field in fields:
            inner = getattr(value, field)
            if field in _CODES:
                found.add(inner)
            elif isinstance(inner, list | Message):
                found |= _codes(inner)
    return found


def _joined(names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    return " ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


def _name(kind: type[Operation | ResourceType], value: int) -> str:
    found = kind._value2member_map_.get(value)
    return str(value) if found is None else str(found.name)
