"""The play of `group_play` with groups of the consumer protocol in it, and topics for them to share out.

A member *enters* (``reads=t,u``, or a ``pattern=``), *reports* with every heartbeat, with ``has=t:0,1`` if that is new,
and *departs*; a static one that means to be back *pauses*. Classic members beside them join and sync as ever, but what
they are given is named by topic too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from group_answers import Actor
from group_play import GROUP, Play, duration
from immutables import Map

from barnabas.coordinator.classic.embedded_protocol import version_of
from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.consumer.group import ConsumerGroup
from barnabas.coordinator.consumer.protocol import ConsumerProtocol
from barnabas.coordinator.consumer.settings import ConsumerGroupSettings
from barnabas.coordinator.consumer.step import KnownTopics
from barnabas.coordinator.groups.protocol import Protocols
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.records import PartitionRecord
from barnabas.metadata.topics_image import TopicImage, TopicsImage
from barnabas.model import errors
from barnabas.model.ids import Uuid
from barnabas.wire.message import decode, encode
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.wire.messages.sync_group import SyncGroupResponse

LEAVES = -1
LEAVES_FOR_A_WHILE = -2
EMBEDDED_VERSION = 1  # of what classic members put into their requests; the first that says what they have


class ConsumerPlay(Play):
    def __init__(self, settings: ConsumerGroupSettings) -> None:
        self.consumer_settings = settings
        self.counts: dict[str, int] = {}
        self.topics = KnownTopics()
        self._topics_version = 0
        super().__init__(GroupSettings())

    def new_shard(self) -> GroupShard:
        return GroupShard(
            lambda: self.settings,
            self._protocols,
            tally=GroupTally(lambda: 0),
        )

    def _protocols(self, shard: GroupShard) -> Protocols:
        classic = ClassicProtocol(shard)
        return Protocols(
            classic, [ConsumerProtocol(shard, classic, lambda group_id: self.consumer_settings, self.topics)]
        )

    # --- in this protocol's words ---------------------------------------------------------------------------------

    def told(self, actor: Actor, response: Any) -> str:
        match response:
            case ConsumerGroupHeartbeatResponse():
                return _told_heartbeat(actor, response)
            case SyncGroupResponse(error_code=0):
                value = decode(ConsumerProtocolAssignment, version_of(response.assignment), response.assignment, 2)
                return f"gets {_text((each.topic, each.partitions) for each in value.assigned_partitions)}"
            case [ConsumerGroupDescribeResponse.DescribedGroup() as group]:
                return _told_group(group)
        return super().told(actor, response)

    def subscription(self, facts: Mapping[str, str]) -> bytes:
        entry = ConsumerProtocolSubscription.TopicPartition
        value = ConsumerProtocolSubscription(
            topics=facts.get("reads", "t").split(","),
            owned_partitions=[entry(topic=name, partitions=which) for name, which in _read(facts.get("has", ""))],
        )
        return struct.pack(">h", EMBEDDED_VERSION) + encode(value, EMBEDDED_VERSION)

    def assignment(self, text: str) -> bytes:
        entry = ConsumerProtocolAssignment.TopicPartition
        value = ConsumerProtocolAssignment(
            assigned_partitions=[entry(topic=name, partitions=which) for name, which in _read(text)]
        )
        return struct.pack(">h", EMBEDDED_VERSION) + encode(value, EMBEDDED_VERSION)

    def topic_ids(self) -> Mapping[str, Uuid]:
        return {name: _topic_id(name) for name in self.counts}

    def shown(self, group: Any) -> str:
        if not isinstance(group, ConsumerGroup):
            return super().shown(group)
        members = "; ".join(
            f"{member.member_id} in {member.member_epoch} has "
            + _text((_name(topic), sorted(which)) for topic, which in sorted(member.assigned.items()))
            for _, member in sorted(group.members.items())
        )
        return f"{group.state}, epoch {group.epoch}: {members or 'nobody'}"

    # --- what can be said -----------------------------------------------------------------------------------------

    def _happens(self, words: list[str]) -> None:
        match words:
            case ["topic", name, "has", count, "partitions" | "partition"]:
                self._set_topics({**self.counts, name: int(count)})
            case ["topic", name, "is", "deleted"]:
                self._set_topics({known: count for known, count in self.counts.items() if known != name})
                super()._happens(words)
            case _:
                super()._happens(words)

    def _set_topics(self, counts: dict[str, int]) -> None:
        self._topics_version += 1
        has_new = bool(set(counts) - set(self.counts))
        self.counts = counts
        self.topics.update(_image(counts), version=self._topics_version, has_new=has_new)

    def _enters(self, actor: Actor, facts: dict[str, str]) -> None:
        actor.facts |= facts
        actor.member_id = facts.get("as", actor.member_id or actor.name)
        reads = facts.get("reads", "" if "pattern" in facts else "t")
        self._heartbeat(
            actor,
            0,
            rebalance_timeout_ms=duration(actor.facts.get("rebalance", "60s")),
            subscribed_topic_names=[name for name in reads.split(",") if name],
            subscribed_topic_regex=facts.get("pattern"),
            server_assignor=facts.get("assignor"),
            topic_partitions=[],
        )

    def _reports(self, actor: Actor, facts: dict[str, str]) -> None:
        self._heartbeat(
            actor,
            int(facts.get("epoch", actor.generation)),
            subscribed_topic_names=facts["reads"].split(",") if "reads" in facts else None,
            subscribed_topic_regex=facts.get("pattern"),
            topic_partitions=_owned(facts["has"]) if "has" in facts else None,
        )

    def _departs(self, actor: Actor, facts: dict[str, str]) -> None:
        self._heartbeat(actor, LEAVES)

    def _pauses(self, actor: Actor, facts: dict[str, str]) -> None:
        self._heartbeat(actor, LEAVES_FOR_A_WHILE)

    def _heartbeat(self, actor: Actor, epoch: int, **fields: Any) -> None:
        message = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=actor.member_id or actor.name,
            member_epoch=epoch,
            instance_id=actor.facts.get("instance"),
            **fields,
        )
        self.ask(actor, GroupRequest(message, 1, actor.name, "/127.0.0.1"))

    def _stays(self, actor: Actor, facts: dict[str, str]) -> None:
        """Report in good time, unheard, for as long as that."""
        until_ms = self.now_ms + duration(facts["for"])
        while self.now_ms < until_ms:
            self.pass_time(min(self.consumer_settings.heartbeat_interval_ms, until_ms - self.now_ms))
            self._reports(actor, {})
        self.heard.clear()

    def _inspects(self, actor: Actor, facts: dict[str, str]) -> None:
        self.ask(actor, GroupRequest(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1))


def _told_heartbeat(actor: Actor, response: ConsumerGroupHeartbeatResponse) -> str:
    if response.member_epoch == LEAVES:
        return "gone"
    if response.member_epoch == LEAVES_FOR_A_WHILE:
        return "expected back"
    actor.generation = response.member_epoch
    if response.assignment is None:
        return f"epoch {response.member_epoch}"
    given = _text((_name(each.topic_id), each.partitions) for each in response.assignment.topic_partitions)
    return f"epoch {response.member_epoch}, may have {given}"


def _told_group(group: ConsumerGroupDescribeResponse.DescribedGroup) -> str:
    if group.error_code:
        return errors.error_of(group.error_code).name
    members = "; ".join(
        f"{member.member_id} ({'consumer' if member.member_type else 'classic'}) has {_named(member.assignment)}"
        f" of {_named(member.target_assignment)}"
        for member in sorted(group.members, key=lambda member: member.member_id)
    )
    return f"{group.group_state}, epoch {group.group_epoch}, {group.assignor_name}: {members or 'nobody'}"


def _named(assignment: ConsumerGroupDescribeResponse.Assignment) -> str:
    return _text((each.topic_name, each.partitions) for each in assignment.topic_partitions)


# --- topics and partitions as text ------------------------------------------------------------------------------------


def _topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"\0"))


def _name(topic: Uuid) -> str:
    return topic.rstrip(b"\0").decode()


def _image(counts: Mapping[str, int]) -> TopicsImage:
    partition = PartitionImage.of(PartitionRecord(replicas=[1], isr=[1], leader=1, directories=[Uuid(bytes(16))]))
    topics = [TopicImage(name, _topic_id(name), (partition,) * count) for name, count in counts.items()]
    return TopicsImage(Map({t.name: t for t in topics}), Map({t.id: t for t in topics}))


def _read(text: str) -> list[tuple[str, list[int]]]:
    """``t:0,1;u:2`` taken apart."""
    named = [part.partition(":") for part in text.split(";") if part not in ("", "nothing")]
    return [(name, [int(index) for index in indexes.split(",")]) for name, _, indexes in named]


def _text(partitions: Iterable[tuple[str, Iterable[int]]]) -> str:
    return ";".join(f"{name}:{','.join(map(str, which))}" for name, which in partitions) or "nothing"


def _owned(text: str) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
    entry = ConsumerGroupHeartbeatRequest.TopicPartitions
    return [entry(topic_id=_topic_id(name), partitions=which) for name, which in _read(text)]
