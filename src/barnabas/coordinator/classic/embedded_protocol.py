"""What classic consumers put into JoinGroup and SyncGroup, as the coordinator reads and writes it for them.

A classic group passes these bytes on unread; only where both protocols meet in one group must the broker know what they
say. Topics have names in them and ids in the coordinator: topics that do not exist are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from typing import Final

from barnabas.metadata.topics_image import TopicsImage
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import decode, encode
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_VERSION: Final = struct.Struct(">h")
_VERSION_MAX: Final = ConsumerProtocolSubscription.versions[-1]


def version_of(data: bytes) -> int:
    """The version in front; a newer one than we know begins with all that ours has."""
    if len(data) < _VERSION.size:
        raise Malformed("an embedded consumer protocol has no version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise Malformed(f"an embedded consumer protocol has version {version}")
    return min(version, _VERSION_MAX)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    return decode(ConsumerProtocolSubscription, version_of(data), data, _VERSION.size)


def read_assignment(data: bytes, topics: TopicsImage) -> dict[Uuid, frozenset[int]]:
    """What a leader gave to a member; nothing at all if it never gave anything."""
    if not data:
        return {}
    assignment = decode(ConsumerProtocolAssignment, version_of(data), data, _VERSION.size)
    return _by_id([(entry.topic, entry.partitions) for entry in assignment.assigned_partitions], topics)


def owned_in(subscription: ConsumerProtocolSubscription, topics: TopicsImage) -> dict[Uuid, frozenset[int]]:
    """What a member says it still has; members of the eager kind say nothing and have given up everything."""
    return _by_id([(entry.topic, entry.partitions) for entry in subscription.owned_partitions], topics)


def write_assignment(partitions: Mapping[Uuid, Collection[int]], version: int, topics: TopicsImage) -> bytes:
    entry = ConsumerProtocolAssignment.TopicPartition
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=sorted(
            (
                entry(topic=topics.by_id[topic].name, partitions=sorted(indexes))
                for topic, indexes in partitions.items()
                if topic in topics.by_id and indexes
            ),
            key=lambda each: each.topic,
        )
    )
    return _VERSION.pack(version) + encode(assignment, version)


def _by_id(entries: list[tuple[str, list[int]]], topics: TopicsImage) -> dict[Uuid, frozenset[int]]:
    found: dict[Uuid, frozenset[int]] = {}
    for name, indexes in entries:
        topic = topics.by_name.get(name)
        if topic is not None and indexes:
            found[topic.id] = found.get(topic.id, frozenset()) | frozenset(indexes)
    return found
