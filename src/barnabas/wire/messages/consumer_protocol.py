"""What members of a classic consumer group tell one another through JoinGroup and SyncGroup.

Brokers pass these bytes on unread, but tools and clients read them, behind an int16 version. Version 1 adds owned
partitions, version 2 the generation, version 3 the rack.
"""

from __future__ import annotations

from barnabas.wire.message import Message, array, binary, int32, string


class ConsumerProtocolSubscription(Message, versions=range(4)):
    class TopicPartition(Message):
        topic: str = string()
        partitions: list[int] = array(int32)

    topics: list[str] = array(string)
    user_data: bytes | None = binary(nullable=True, default=None)
    owned_partitions: list[TopicPartition] = array(TopicPartition, since=1, ignorable=True)
    generation_id: int = int32(since=2, default=-1, ignorable=True)
    rack_id: str | None = string(since=3, nullable=True, default=None, ignorable=True)


class ConsumerProtocolAssignment(Message, versions=range(4)):
    class TopicPartition(Message):
        topic: str = string()
        partitions: list[int] = array(int32)

    assigned_partitions: list[TopicPartition] = array(TopicPartition)
    user_data: bytes | None = binary(nullable=True, default=None)
