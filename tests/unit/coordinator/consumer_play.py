"""A stage for consumer groups: a group shard on a log in a list, with virtual time and timers.

Steps are performed as the runtime does: lines are appended and replayed at once, timers armed, answers handed out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from immutables import Map

from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.consumer.protocol import ConsumerProtocol
from barnabas.coordinator.consumer.settings import ConsumerGroupSettings
from barnabas.coordinator.consumer.step import KnownTopics
from barnabas.coordinator.groups.protocol import Protocols
from barnabas.coordinator.groups.requests import GroupRequest
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.runtime.effects import Effects, Record
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.records import PartitionRecord
from barnabas.metadata.topics_image import TopicImage, TopicsImage
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

GROUP = "g"


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"\0"))


def topics_image(counts: Mapping[str, int]) -> TopicsImage:
    partition = PartitionImage.of(PartitionRecord(replicas=[1], isr=[1], leader=1, directories=[Uuid(bytes(16))]))
    topics = [TopicImage(name, topic_id(name), (partition,) * count) for name, count in counts.items()]
    return TopicsImage(Map({t.name: t for t in topics}), Map({t.id: t for t in topics}))


def named(partitions: Mapping[str, list[int]] | None) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None:
    if partitions is None:
        return None
    entry = ConsumerGroupHeartbeatRequest.TopicPartitions
    return [entry(topic_id=topic_id(name), partitions=list(indexes)) for name, indexes in partitions.items()]


def assignment_of(response: ConsumerGroupHeartbeatResponse) -> dict[str, list[int]] | None:
    if response.assignment is None:
        return None
    return {t.topic_id.rstrip(b"\0").decode(): t.partitions for t in response.assignment.topic_partitions}


class Play:
    def __init__(self, topics: Mapping[str, int] | None = None, **settings: Any) -> None:
        self.settings = ConsumerGroupSettings(**{"assignment_interval_ms": 0, **settings})
        self.now_ms = 1_000_000
        self.log: list[Record] = []
        self.timers: dict[Hashable, int] = {}
        self.version = 0
        self.counts: dict[str, int] = {}
        self.topics = KnownTopics()
        self.set_topics(topics or {})
        self.classic_settings = GroupSettings(initial_rebalance_delay_ms=0)
        self.answers: dict[int, Any] = {}
        self._request_id = 0
        self._start()
        self.perform(self.shard.loaded(self.now_ms))
        self.timers.clear()  # offsets do not expire here

    def _start(self) -> None:
        self.shard = GroupShard(
            lambda: self.classic_settings,
            self._protocols,
            tally=GroupTally(lambda: 0),
        )
        self.table: dict[str, Any] = self.shard.groups

    def _protocols(self, shard: GroupShard) -> Protocols:
        classic = ClassicProtocol(shard)
        return Protocols(classic, [ConsumerProtocol(shard, classic, lambda group_id: self.settings, self.topics)])

    # --- the world around -----------------------------------------------------------------------------------------

    def set_topics(self, counts: Mapping[str, int]) -> None:
        self.version += 1
        has_new = bool(set(counts) - set(self.counts))
        self.counts = dict(counts)
        self.topics.update(topics_image(counts), version=self.version, has_new=has_new)

    def perform(self, effects: Effects) -> None:
        for record in effects.records:
            self.log.append(record)
            self._replay(record)
        for timer in effects.timers:
            if timer.deadline_ms is None:
                self.timers.pop(timer.key, None)
            else:
                self.timers[timer.key] = timer.deadline_ms
        for request_id, response in effects.answers:
            self.answers[request_id] = response

    def advance(self, delay_ms: int) -> None:
        end_ms = self.now_ms + delay_ms
        while due := [(at, repr(key), key) for key, at in self.timers.items() if at <= end_ms]:
            at, _, key = min(due)
            self.now_ms = max(self.now_ms, at)
            del self.timers[key]
            self.perform(self.shard.on_timer(key, self.now_ms))
        self.now_ms = end_ms

    def restart(self, *, is_compacted: bool = False) -> None:
        """Another broker takes over: nothing is left but the log, or what compaction leaves of it."""
        if is_compacted:
            last = {record.key: index for index, record in enumerate(self.log)}
            self.log = [self.log[index] for index in sorted(last.values())]
        self._start()
        self.timers.clear()
        for record in self.log:
            self._replay(record)
        self.perform(self.shard.loaded(self.now_ms))

    def _replay(self, record: Record) -> None:
        self.shard.replay(record.key, record.value, offset=0, producer=None, timestamp_ms=self.now_ms)

    # --- asking ---------------------------------------------------------------------------------------------------

    def send(self, message: Message, version: int) -> Any:
        """What a request is answered with at once; None if it waits, an ApiError if it is refused."""
        self._request_id += 1
        request = GroupRequest(message, version, "client", "/127.0.0.1", f"made-{len(self.log)}")
        try:
            self.perform(self.shard.handle(self._request_id, request, self.now_ms))
        except ApiError as error:
            return error
        return self.answers.pop(self._request_id, None)

    def ask(self, member: str, epoch: int, has: Mapping[str, list[int]] | None = None, **fields: Any):
        """A heartbeat of a member, for short: what it answers as ``(epoch, assignment)`` or the error's code."""
        version = fields.pop("version", 1)
        message = ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id=member, member_epoch=epoch, topic_partitions=named(has), **fields
        )
        response = self.send(message, version)
        if isinstance(response, ApiError):
            return response.error.code
        return response.member_epoch, assignment_of(response)

    def join(self, member: str, *names: str, **fields: Any):
        return self.ask(
            member, 0, {}, **{"subscribed_topic_names": list(names), "rebalance_timeout_ms": 60_000, **fields}
        )

    def configure(self, **settings: Any) -> None:
        self.settings = replace(self.settings, **settings)

    @property
    def group(self):
        return self.table[GROUP]

    def owned(self, member: str) -> dict[str, list[int]]:
        assigned = self.group.members[member].assigned
        return {t.rstrip(b"\0").decode(): sorted(p) for t, p in assigned.items()}
