"""Requests for every API and version, in several shapes: as a client would send them, and as no client should.

A shape decides what stands in arrays, strings and numbers. Names of topics, groups and users are those of `state`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.broker.requests.api import Route
from barnabas.broker.requests.routes import ROUTES
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.records import encode_batch
from barnabas.wire.schema import TAGS_OF_OURS, Array, Fixed, Nested

TOPIC, COMPACTED, GROUP, TRANSACTION = "judge", "judge-compacted", "judge-group", "judge-txn"
ABSENT = "absent"
INVALID = "not a topic!"
SHAPES = ("valid", "default", "empty", "null", "duplicated", "unknown", "mixed", "invalid", "negative", "huge")
INT_MAX = {1: 127, 2: 32767, 4: 2**31 - 1, 8: 2**63 - 1}

# APIs that are no question of one client to one broker, or that would end the run.
LEFT_OUT = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.UNREGISTER_BROKER, ApiKey.ADD_RAFT_VOTER}
LEFT_OUT |= {ApiKey.REMOVE_RAFT_VOTER}

_VALID: Mapping[str, Any] = {
    "acks": -1,
    "timeout_ms": 1000,
    "max_wait_ms": 1,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 500,
    "partition_max_bytes": 1 << 20,
    "max_bytes": 1 << 20,
    "min_bytes": 0,
    "session_epoch": -1,
    "session_id": 0,
    "replica_id": -1,
    "timestamp": -1,
    "current_leader_epoch": -1,
    "last_fetched_epoch": -1,
    "leader_epoch": 0,
    "resource_type": 2,
    "resource_pattern_type": 3,
    "resource_type_filter": 2,
    "pattern_type_filter": 3,
    "permission_type": 3,
    "operation": 3,
    "config_operation": 0,
    "response_partition_limit": 2000,
    "endpoint_type": 1,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 5,
    "validate_only": True,
    "include_synonyms": True,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "member_epoch": 0,
    "producer_id": 7000,
    "producer_epoch": 0,
    "transaction_timeout_ms": 60_000,
    "offset": 1,
    "fetch_offset": 0,
    "committed_offset": 1,
    "key_type": 0,
    "match_type": 0,
    "mechanism": 1,
    "iterations": 4096,
    "broker_id": 1,
}
_STRINGS: Mapping[str, str] = {
    "group_id": GROUP,
    "group": GROUP,
    "groups": GROUP,
    "group_ids": GROUP,
    "groups_names": ABSENT,
    "key": GROUP,
    "coordinator_keys": GROUP,
    "transactional_id": TRANSACTION,
    "transactional_ids": TRANSACTION,
    "principal": "User:somebody",
    "host": "*",
    "protocol_type": "consumer",
    "protocol_name": "range",
    "client_software_name": "judge",
    "client_software_version": "1.0",
    "entity_type": "user",
    "entity_name": "somebody",
    "member_id": "",
    "configuration_keys": "cleanup.policy",
    "server_assignor": "uniform",
    "path": "/absent",
    "states_filter": "Stable",
    "types_filter": "classic",
    "state_filters": "Ongoing",
    "users": "somebody",
    "subscribed_topic_regex": "judge.*",
}
_TOPICS = {"name", "topic", "topic_name", "topic_names", "resource_name", "subscribed_topic_names"}
_INDEXES = {"partition_index", "partition", "index", "partitions", "partition_indexes"}
# Topics that a request would create or delete have names of their own: the others are needed until the end.
_JOINED = {ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT}
_CHANGED = {ApiKey.CREATE_TOPICS: "judge-new", ApiKey.DELETE_TOPICS: ABSENT}


@dataclass(frozen=True, slots=True)
class Case:
    """One request in one version and shape."""

    api: ApiKey
    version: int
    shape: str
    message: Message

    @property
    def name(self) -> str:
        return f"{self.api.name} v{self.version} {self.shape}"


def cases(versions: Mapping[int, range], topic_ids: Mapping[str, Uuid]) -> Iterator[Case]:
    """All requests of the APIs and versions that both brokers serve."""
    for route in ROUTES.values():
        if route.key in LEFT_OUT or route.key not in versions:
            continue
        seen: list[Any] = []
        for version in route.versions:
            if version not in versions[route.key]:
                continue
            for shape in SHAPES:
                message = _message(route, version, shape, topic_ids)
                if route.key is ApiKey.PRODUCE and message.acks == 0:
                    continue
                if (version, message) not in seen:
                    seen.append((version, message))
                    yield Case(route.key, version, shape, message)


def _message(route: Route, version: int, shape: str, topic_ids: Mapping[str, Uuid]) -> Any:
    if shape == "default":
        message: Any = route.request()
        if route.key is ApiKey.PRODUCE:
            message.acks = 1
        return message
    return _Writer(route.key, version, shape, topic_ids).struct(route.request)


class _Writer:
    def __init__(self, api: ApiKey, version: int, shape: str, topic_ids: Mapping[str, Uuid]) -> None:
        self._api = api
        self._version = version
        self._shape = shape
        self._topic_ids = topic_ids
        self._topic = _CHANGED.get(api, TOPIC)

    def struct(self, cls: Any) -> Any:
        message = cls()
        for field in cls.fields:
            if not field.is_in(self._version) or (field.tag or 0) >= TAGS_OF_OURS:
                continue
            value = self._value(field, field.type)
            if value is None and not field.is_nullable(self._version):
                continue
            setattr(message, field.name, value)
        return message

    def _value(self, field: Any, kind: Any) -> Any:
        if isinstance(kind, Array):
            return self._array(field, kind)
        if self._shape == "null" and field.is_nullable(self._version):
            return None
        if isinstance(kind, Nested):
            return self.struct(kind.target)
        if kind.name == "records":
            return bytes(encode_batch([(1_700_000_000_000, b"k", b"v", ())]))
        if kind.name == "string":
            return self._string(field)
        if kind.name == "bytes":
            return b"" if self._shape == "empty" else b"judge"
        if kind.name == "uuid":
            return self._topic_ids.get(self._topic, ZERO_UUID) if self._is_known else Uuid(bytes(range(16)))
        if kind.name == "bool":
            return bool(_VALID.get(field.name, False))
        return self._number(field, kind)

    @property
    def _is_known(self) -> bool:
        return self._shape not in ("unknown", "invalid")

    def _array(self, field: Any, kind: Array) -> Any:
        if self._shape == "empty":
            return []
        if self._shape == "null":
            return None if field.is_nullable(self._version) else []
        element = self._value(field, kind.element)
        if element is None:
            element = 0 if isinstance(kind.element, Fixed) else ABSENT
        if self._shape == "duplicated":
            return [element, element]
        if self._shape == "mixed":
            other = _Writer(self._api, self._version, "unknown", self._topic_ids)._value(field, kind.element)
            return [element, ABSENT if other is None else other]
        return [element]

    def _string(self, field: Any) -> str | None:
        if self._shape == "empty":
            return ""
        if field.name in _TOPICS:
            if self._shape == "invalid":
                return INVALID
            return self._topic if self._is_known else ABSENT
        if field.name == "group_id" and self._api in _JOINED and self._is_known:
            return f"{GROUP}-{self._api.name.lower()}-{self._version}-{self._shape}"
        if self._is_known:
            return _STRINGS.get(field.name, None if field.is_nullable(self._version) else "x")
        return ABSENT if field.name not in ("protocol_type", "host", "principal") else _STRINGS[field.name]

    def _number(self, field: Any, kind: Any) -> int | float:
        if kind.name == "float64":
            return 1000.0
        valid = _VALID.get(field.name, 0)
        if self._api in (ApiKey.PRODUCE, ApiKey.FETCH) and field.name in ("acks", "max_wait_ms", "min_bytes"):
            return int(valid)
        if self._shape == "negative":
            return -5
        if self._shape == "huge":
            # A wait or a session of years would keep the judge from its end.
            waits = ("timeout_ms", "max_wait_ms", "rebalance_timeout_ms", "session_timeout_ms", "num_partitions")
            return int(valid) if field.name in waits else INT_MAX[kind.size_bytes]
        if field.name in _INDEXES:
            return 0 if self._is_known else 99
        return int(valid)
