"""Share groups as a machine: which share-partitions get state, and when members get them."""

from __future__ import annotations

from typing import Any

from consumer_play import topic_id, topics_image

from barnabas.coordinator.classic.protocol import ClassicProtocol
from barnabas.coordinator.consumer.step import KnownTopics
from barnabas.coordinator.groups.protocol import Protocols
from barnabas.coordinator.groups.requests import GroupRequest, ProtocolRequest, TopicsDeleted
from barnabas.coordinator.groups.settings import GroupSettings
from barnabas.coordinator.groups.shard import GroupShard
from barnabas.coordinator.groups.tally import GroupTally
from barnabas.coordinator.share.group import StatePartitions, TopicState, TopicStates
from barnabas.coordinator.share.protocol import ShareProtocol
from barnabas.coordinator.share.requests import (
    BeginDeletion,
    BeginOffsets,
    HeartbeatResult,
    ReadStates,
    StateAbandoned,
    StateDeleted,
    StateInitialized,
)
from barnabas.coordinator.share.settings import ShareGroupSettings
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


class Play:
    def __init__(self, **settings: int) -> None:
        self.settings = ShareGroupSettings(**settings)
        self.topics = KnownTopics()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.now_ms = 1_000_000
        self.show({"t": 2})
        self.shard = self.new_shard()

    def new_shard(self) -> GroupShard:
        def protocols(shard: GroupShard) -> Protocols:
            return Protocols(ClassicProtocol(shard), [ShareProtocol(shard, lambda _: self.settings, self.topics)])

        return GroupShard(GroupSettings, protocols, tally=GroupTally(lambda: 0))

    def show(self, counts: dict[str, int]) -> None:
        self.topics.update(topics_image(counts), version=self.topics.version + 1, has_new=True)

    def ask(self, request: Any) -> Any:
        effects = self.shard.handle(1, request, self.now_ms)
        for key, value in effects.records:
            self.shard.replay(key, value, offset=len(self.log), producer=None, timestamp_ms=self.now_ms)
            self.log.append((key, value))
        return effects.answers[0].response if effects.answers else None

    def own(self, content: Any) -> Any:
        return self.ask(ProtocolRequest("share", content))

    def beat(self, member: str, epoch: int, *names: str) -> HeartbeatResult:
        message = ShareGroupHeartbeatRequest(
            group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=list(names) or None
        )
        result: HeartbeatResult = self.ask(GroupRequest(message, 1))
        return result

    @property
    def states(self) -> StatePartitions:
        found: StatePartitions = self.own(ReadStates("g"))
        return found

    def restart(self) -> None:
        self.shard = self.new_shard()
        for key, value in self.log:
            self.shard.replay(key, value, offset=0, producer=None, timestamp_ms=0)


def states(**topics: set[int]) -> TopicStates:
    return {topic_id(name): TopicState(name, frozenset(indexes)) for name, indexes in topics.items()}


def assigned(result: HeartbeatResult) -> dict[str, list[int]] | None:
    if result.response.assignment is None:
        return None
    rows = result.response.assignment.topic_partitions
    return {row.topic_id.rstrip(b"\0").decode(): row.partitions for row in rows}


def test_members_get_partitions_once_their_state_is_there() -> None:
    play = Play()
    result = play.beat("a", 0, "t")
    assert (result.to_initialize, assigned(result)) == (states(t={0, 1}), {})
    play.own(StateInitialized("g", result.to_initialize))
    again = play.beat("a", result.response.member_epoch)
    assert (again.to_initialize, assigned(again)) == ({}, {"t": [0, 1]})
    assert assigned(play.beat("a", again.response.member_epoch)) is None
    play.restart()
    assert play.states == StatePartitions(initialized=states(t={0, 1}))
    assert assigned(play.beat("a", again.response.member_epoch, "t")) == {"t": [0, 1]}


def test_new_partitions_get_state_too() -> None:
    play = Play(assignment_interval_ms=0)
    play.own(StateInitialized("g", play.beat("a", 0, "t").to_initialize))
    epoch = play.beat("a", 0, "t").response.member_epoch
    play.show({"t": 3})
    result = play.beat("a", epoch)
    assert result.to_initialize == states(t={2})
    play.own(StateInitialized("g", result.to_initialize))
    assert assigned(play.beat("a", result.response.member_epoch)) == {"t": [0, 1, 2]}


def test_an_attempt_that_failed_or_takes_too_long_is_repeated() -> None:
    """group.share.initialize.retry.interval.ms"""
    play = Play(initialize_retry_interval_ms=500)
    result = play.beat("a", 0, "t")
    assert play.beat("a", result.response.member_epoch).to_initialize == {}, "it is under way"
    play.now_ms += 501
    assert play.beat("a", result.response.member_epoch).to_initialize == states(t={0, 1})
    play.own(StateAbandoned("g", states(t={0, 1})))
    assert play.beat("a", result.response.member_epoch).to_initialize == states(t={0, 1})


def test_offsets_of_an_empty_group_get_a_new_state_epoch() -> None:
    play = Play()
    first = play.own(BeginOffsets("g", states(t={0})))
    assert play.states.initializing == states(t={0})
    play.own(StateInitialized("g", states(t={0})))
    assert play.own(BeginOffsets("g", states(t={0}))) == first + 1


def test_deleted_state_is_forgotten_when_that_is_done() -> None:
    play = Play()
    play.own(BeginOffsets("g", states(t={0, 1})))
    play.own(StateInitialized("g", states(t={0, 1})))
    assert play.own(BeginDeletion("g", None)) == states(t={0, 1})
    assert play.states == StatePartitions(deleting={topic_id("t"): "t"})
    play.own(StateDeleted("g", frozenset((topic_id("t"),))))
    assert play.states == StatePartitions()


def test_a_deleted_topic_is_forgotten() -> None:
    play = Play()
    play.own(StateInitialized("g", play.beat("a", 0, "t").to_initialize))
    play.show({})
    play.ask(TopicsDeleted(frozenset(("t",))))
    assert play.states == StatePartitions()
