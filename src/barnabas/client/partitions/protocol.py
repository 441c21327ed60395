"""What members of a classic consumer group tell one another: their subscriptions, and from the leader an assignment.

Bytes to values and back, behind the int16 version that Java's clients put first. Who gets what is decided in
``assignors.py``; brokers pass all of this on unread.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from barnabas.model.errors import Malformed
from barnabas.model.ids import TopicPartition
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

PROTOCOL_TYPE: Final = "consumer"
NO_GENERATION: Final = -1
_VERSION: Final = Struct(">h")

M = TypeVar("M", bound=Message)


class Subscription(NamedTuple):
    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION  # in which ``owned`` was assigned
    rack: str | None = None


def encode_subscription(subscription: Subscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(subscription.owned).items()
        ],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return _encoded(message)


def decode_subscription(data: bytes) -> Subscription:
    message = _decoded(ConsumerProtocolSubscription, data)
    return Subscription(
        tuple(message.topics),
        message.user_data,
        tuple(TopicPartition(entry.topic, index) for entry in message.owned_partitions for index in entry.partitions),
        message.generation_id,
        message.rack_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    )
    return _encoded(message)


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """An empty assignment may be no bytes at all: the broker has none for a member that the leader left out."""
    if not data:
        return ()
    message = _decoded(ConsumerProtocolAssignment, data)
    places = [TopicPartition(entry.topic, index) for entry in message.assigned_partitions for index in entry.partitions]
    return tuple(sorted(places))


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _encoded(message: Message) -> bytes:
    version = type(message).versions[-1]
    return _VERSION.pack(version) + encode(message, version)


def _decoded(kind: type[M], data: bytes) -> M:
    """A version newer than ours is read as our newest: fields are only ever added at the end."""
    if len(data) < _VERSION.size:
        raise Malformed(f"{len(data)} bytes are no {kind.__name__}")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise Malformed(f"{kind.__name__} of version {version}")
    return decode(kind, min(version, kind.versions[-1]), data, _VERSION.size)
