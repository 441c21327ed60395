"""The share coordinator's shard: what is merged, what is fenced, and when a snapshot makes older records redundant."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.runtime.effects import Effects
from barnabas.coordinator.share_state.batches import StateBatch, merged
from barnabas.coordinator.share_state.records import SNAPSHOT, UPDATE, SharePartitionKey, record_type
from barnabas.coordinator.share_state.requests import (
    Delete,
    Initialize,
    Prune,
    Read,
    ReadSummary,
    StateTopicsDeleted,
    Write,
)
from barnabas.coordinator.share_state.settings import ShareStateSettings
from barnabas.coordinator.share_state.shard import COLD, PRUNE, ShareStateShard
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid

TOPIC = Uuid(b"t" * 16)
KEY = SharePartitionKey("g", TOPIC, 0)


class Stage:
    def __init__(self, **settings: int) -> None:
        self.settings = ShareStateSettings(**settings)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.start_offset = 0
        self.now_ms = 1000
        self.topics = {TOPIC}
        self.shard = self.new_shard()

    def new_shard(self) -> ShareStateShard:
        return ShareStateShard(lambda: self.settings, lambda key: key.topic_id in self.topics)

    def perform(self, effects: Effects) -> Any:
        for key, value in effects.records:
            self.shard.replay(key, value, offset=len(self.log), producer=None, timestamp_ms=self.now_ms)
            self.log.append((key, value))
        for send in effects.sends:
            assert isinstance(send, Prune)
            self.start_offset = send.offset
        return effects.answers[0].response if effects.answers else None

    def ask(self, request: Any) -> Any:
        return self.perform(self.shard.handle(1, request, self.now_ms))

    def refusal(self, request: Any) -> errors.WireError:
        with pytest.raises(ApiError) as refused:
            self.ask(request)
        return refused.value.error

    def restart(self) -> None:
        self.shard = self.new_shard()
        for offset, (key, value) in enumerate(self.log):
            if offset >= self.start_offset:
                self.shard.replay(key, value, offset=offset, producer=None, timestamp_ms=0)

    @property
    def kinds(self) -> list[int]:
        return [record_type(key) for key, _ in self.log]


def write(*batches: tuple[int, int, int, int], start: int = 0, leader: int = 1, state: int = 1, done: int = 0) -> Write:
    return Write(KEY, state, leader, start, done, tuple(StateBatch(*batch) for batch in batches))


def ready(**settings: int) -> Stage:
    stage = Stage(**settings)
    stage.ask(Initialize(KEY, 1, -1))
    stage.ask(Read(KEY, 1))
    return stage


def test_what_was_written_is_read_after_a_restart() -> None:
    stage = ready()
    stage.ask(write((0, 9, 2, 1), (15, 19, 0, 2), start=0, done=10))
    stage.ask(write((10, 14, 4, 1), start=10))
    stage.restart()
    state = stage.ask(Read(KEY, 1))
    assert (state.start_offset, state.state_epoch, state.leader_epoch) == (10, 1, 1)
    assert state.batches == (StateBatch(10, 14, 4, 1), StateBatch(15, 19, 0, 2))
    assert stage.ask(ReadSummary(KEY)).delivery_complete_count == 0


def test_a_new_leader_fences_the_old_one() -> None:
    stage = ready()
    stage.ask(Read(KEY, 3))
    assert stage.refusal(write((0, 0, 2, 1), leader=2)) is errors.FENCED_LEADER_EPOCH
    assert stage.refusal(Read(KEY, 2)) is errors.FENCED_LEADER_EPOCH
    stage.restart()
    assert stage.refusal(write((0, 0, 2, 1), leader=2)) is errors.FENCED_LEADER_EPOCH, "after a restart as well"
    stage.ask(write((0, 0, 2, 1), leader=3))


def test_new_offsets_fence_the_old_state() -> None:
    stage = ready()
    stage.ask(write((0, 9, 2, 1)))
    stage.ask(Initialize(KEY, 2, 5))
    assert stage.refusal(write((10, 10, 2, 1), state=1)) is errors.FENCED_STATE_EPOCH
    assert stage.refusal(Initialize(KEY, 1, 0)) is errors.FENCED_STATE_EPOCH
    assert stage.ask(Read(KEY, 1)).start_offset == 5
    assert stage.ask(Read(KEY, 1)).batches == ()


def test_state_that_was_never_created_is_not_written() -> None:
    stage = Stage()
    assert stage.refusal(write((0, 0, 2, 1))) is errors.INVALID_REQUEST
    assert stage.refusal(Read(KEY, 1)) is errors.INVALID_REQUEST
    assert stage.ask(ReadSummary(KEY)).start_offset == -1
    stage.topics = set()
    assert stage.refusal(Initialize(KEY, 1, -1)) is errors.UNKNOWN_TOPIC_OR_PARTITION


def test_after_some_updates_comes_a_snapshot() -> None:
    """share.coordinator.snapshot.update.records.per.snapshot"""
    stage = ready(updates_per_snapshot=2)
    for offset in range(6):
        stage.ask(write((offset, offset, 2, 1), start=offset))
    assert stage.kinds == [SNAPSHOT, UPDATE, UPDATE, SNAPSHOT, UPDATE, UPDATE, SNAPSHOT, UPDATE]
    before = stage.shard.states
    stage.restart()
    assert stage.shard.states == before


def test_redundant_records_are_pruned() -> None:
    """share.coordinator.state.topic.prune.interval.ms"""
    stage = ready(updates_per_snapshot=1, prune_interval_ms=700)
    assert (PRUNE,) in [timer.key for timer in stage.shard.loaded(0).timers if timer.deadline_ms == 700]
    for offset in range(5):
        stage.ask(write((offset, offset, 2, 1), start=offset))
    stage.perform(stage.shard.on_timer((PRUNE,), 0))
    assert stage.start_offset == 6
    before = {key: replace(state, snapshot_offset=0) for key, state in stage.shard.states.items()}
    stage.restart()
    assert {key: replace(state, snapshot_offset=0) for key, state in stage.shard.states.items()} == before


def test_share_partitions_without_changes_do_not_keep_old_records() -> None:
    """share.coordinator.cold.partition.snapshot.interval.ms"""
    stage = ready(cold_snapshot_interval_ms=5000)
    stage.ask(write((0, 0, 2, 1)))
    stage.now_ms = 4000
    assert not stage.shard.on_timer((COLD,), 4000).records
    stage.now_ms = 6000
    stage.perform(stage.shard.on_timer((COLD,), 6000))
    assert stage.kinds == [SNAPSHOT, UPDATE, UPDATE, SNAPSHOT]
    stage.perform(stage.shard.on_timer((PRUNE,), 6000))
    assert stage.start_offset == 3


def test_deleted_state_is_gone() -> None:
    stage = ready()
    stage.ask(Delete(KEY))
    stage.ask(Delete(KEY))  # which is no error
    stage.restart()
    assert stage.shard.states == {}
    stage.ask(Initialize(KEY, 1, -1))
    stage.ask(StateTopicsDeleted(frozenset((TOPIC,))))
    assert stage.shard.states == {}


BATCHES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12), st.sampled_from((0, 2, 4)), st.integers(1, 5)), max_size=8
)


def apart(rows: list[tuple[int, int, int, int]]) -> list[StateBatch]:
    result: list[StateBatch] = []
    for first, size, state, count in sorted(rows):
        start = max(first, result[-1].last_offset + 1 if result else 0)
        result.append(StateBatch(start, start + size, state, count))
    return result


@given(BATCHES, BATCHES, st.integers(0, 50))
def test_merged_batches_are_what_merged_records_are(
    old: list[tuple[int, int, int, int]], new: list[tuple[int, int, int, int]], start_offset: int
) -> None:
    def spread(batches: list[StateBatch]) -> dict[int, tuple[int, int]]:
        return {
            offset: (batch.delivery_count, batch.delivery_state)
            for batch in batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }

    first, second = apart(old), apart(new)
    model = spread(first)
    for offset, row in spread(second).items():
        model[offset] = max(row, model.get(offset, row))
    result = merged(first, second, start_offset=start_offset)
    assert spread(result) == {offset: row for offset, row in model.items() if offset >= start_offset}
    for one, other in pairwise(result):
        assert one.last_offset < other.first_offset
        assert one.last_offset + 1 < other.first_offset or one[2:] != other[2:]
