"""A member of the classic protocol beside those of ``consumer_play``, in one group with them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from consumer_play import GROUP, Play

from barnabas.coordinator.classic.embedded_protocol import version_of
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.message import decode, encode
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest

REBALANCE = errors.REBALANCE_IN_PROGRESS.code
SESSION_MS = 10_000
VERSION = 1


def subscription(names: list[str], owned: Mapping[str, list[int]]) -> bytes:
    entry = ConsumerProtocolSubscription.TopicPartition
    value = ConsumerProtocolSubscription(
        topics=names, owned_partitions=[entry(topic=name, partitions=parts) for name, parts in owned.items()]
    )
    return struct.pack(">h", VERSION) + encode(value, VERSION)


def assignment(owned: Mapping[str, list[int]]) -> bytes:
    entry = ConsumerProtocolAssignment.TopicPartition
    value = ConsumerProtocolAssignment(
        assigned_partitions=[entry(topic=name, partitions=parts) for name, parts in owned.items()]
    )
    return struct.pack(">h", VERSION) + encode(value, VERSION)


class Classic:
    """A member that speaks the classic protocol, cooperatively: it says what it has when it joins."""

    def __init__(self, play: Play, member_id: str = "", instance: str | None = None, protocol: str = "range") -> None:
        self.play = play
        self.member_id = member_id
        self.instance = instance
        self.protocol = protocol
        self.generation = -1
        self.has: dict[str, list[int]] = {}
        self.request_id = 0

    def join(self, *names: str, protocol_type: str = "consumer", version: int = 3, metadata: bytes | None = None):
        message = JoinGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=30_000,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(
                    name=self.protocol, metadata=subscription(list(names), self.has) if metadata is None else metadata
                )
            ],
        )
        answer = self.play.send(message, version)
        self.request_id = self.play._request_id
        return self.heard(answer)

    def heard(self, answer: Any):
        """What a join was answered with: the generation, an error's code, or nothing yet."""
        if answer is None:
            return None
        if isinstance(answer, ApiError):
            return answer.error.code
        if answer.error_code:
            return answer.error_code
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return self.generation

    def late(self):
        """The answer to a join that had to wait."""
        return self.heard(self.play.answers.pop(self.request_id, None))

    def sync(self, **assignments: Mapping[str, list[int]]):
        message = SyncGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance,
            generation_id=self.generation,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=name.replace("_", "-"), assignment=assignment(parts)
                )
                for name, parts in assignments.items()
            ],
        )
        answer = self.play.send(message, 5)
        if isinstance(answer, ApiError):
            return answer.error.code
        if answer.error_code:
            return answer.error_code
        assert version_of(answer.assignment) == VERSION
        value = decode(ConsumerProtocolAssignment, VERSION, answer.assignment, 2)
        self.has = {entry.topic: entry.partitions for entry in value.assigned_partitions}
        return self.has

    def heartbeat(self):
        message = HeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance,
            generation_id=self.generation,
        )
        answer = self.play.send(message, 4)
        return answer.error.code if isinstance(answer, ApiError) else answer.error_code

    def leave(self):
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        answer = self.play.send(LeaveGroupRequest(group_id=GROUP, members=[identity]), 5)
        return answer.members[0].error_code


def settled_pair(play: Play) -> tuple[Classic, Classic]:
    """A stable classic group of two, each with two partitions."""
    one, two = Classic(play), Classic(play)
    assert one.join("t") == 1
    assert one.sync(**{one.member_id.replace("-", "_"): {"t": [0, 1, 2, 3]}}) == {"t": [0, 1, 2, 3]}
    assert two.join("t") is None
    assert one.heartbeat() == REBALANCE
    assert one.join("t") == 2
    assert two.late() == 2
    parts = {one.member_id.replace("-", "_"): {"t": [0, 1]}, two.member_id.replace("-", "_"): {"t": [2, 3]}}
    assert one.sync(**parts) == {"t": [0, 1]}
    assert two.sync() == {"t": [2, 3]}
    return one, two
