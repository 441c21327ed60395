"""What two brokers answered, made comparable: ids, times, addresses and texts are normalised, lists are sorted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.wire.message import Message
from barnabas.wire.schema import TAGS_OF_OURS

CLOSED = "the connection is closed"
SILENT = "no answer in time"
# What differs between any two clusters.
_IDS = {
    "member_id",
    "cluster_id",
    "host",
    "port",
    "node_id",
    "leader_id",
    "broker_id",
    "controller_id",
    "producer_id",
    "log_dir",
    "session_id",
    "finalized_features_epoch",
    "client_host",
    "leader_epoch",
    "current_leader_epoch",
    "directory_id",
    "replica_directory_id",
    "throttle_time_ms",
    "total_bytes",
    "usable_bytes",
    "partition_size",
    "error_message",
    "base_offset",  # where a log ends depends on all requests before
    "last_stable_offset",
    "end_offset",
    "low_watermark",
    "last_timestamp",
    "producer_epoch",
    "leader",
    "generation_id",
    "batch_index_error_message",
    "documentation",
    "log_append_time_ms",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
    "log_end_offset",
    "high_watermark",
    "api_keys",  # compared by the versions that both serve
    "supported_features",
    "finalized_features",
}


def comparable(answer: Message | str, version: int) -> Any:
    """The answer as plain values."""
    return answer if isinstance(answer, str) else _struct(answer, version)


def _struct(message: Any, version: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in message.fields:
        if not field.is_in(version) or (field.tag or 0) >= TAGS_OF_OURS or field.name in _IDS:
            continue
        found[field.name] = _value(getattr(message, field.name), version)
    return found


def _value(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return _struct(value, version)
    if isinstance(value, list):
        return sorted((_value(each, version) for each in value), key=repr)
    if isinstance(value, Uuid):
        return "none" if value == ZERO_UUID else "id"
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes" if len(bytes(value)) else "no bytes"
    return value


def differences(kafka: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Paths at which two answers differ, with both values."""
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for key in kafka:
            yield from differences(kafka[key], ours.get(key), f"{path}.{key}" if path else key)
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for first, second in zip(kafka, ours, strict=True):
            yield from differences(first, second, path)
    elif isinstance(kafka, list) and isinstance(ours, list):
        yield f"{path}[]", len(kafka), len(ours)
    elif kafka != ours:
        yield path, kafka, ours
