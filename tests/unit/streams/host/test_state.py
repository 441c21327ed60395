"""The state log: what is restored, when a kept task may catch up, when a snapshot replaces the log."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.streams.errors import StateCorrupt
from barnabas.streams.host.state import DELETED_MIN, LOG_BYTES_MIN, Chunk, Head, StateLog, StateTooLarge


class Variables:
    """Spark's two state variables of a task, in memory."""

    def __init__(self) -> None:
        self.head: tuple[Any, ...] | None = None
        self.chunks: dict[int, bytes] = {}
        self.reads = 0

    def get(self) -> tuple[Any, ...] | None:
        return self.head

    def update(self, newValue: tuple[Any, ...]) -> None:  # noqa: N803
        self.head = newValue

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:
        self.reads += 1
        found = self.chunks.get(key[0])
        return None if found is None else (found,)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self.chunks[key[0]] = value[0]

    def removeKey(self, key: tuple[int]) -> None:
        self.chunks.pop(key[0], None)

    def open(self, bytes_max: int = 1 << 30) -> StateLog:
        return StateLog(self, self, task="0_0", bytes_max=bytes_max)

    def append(self, *contents: bytes, snapshot: bytes = b"all", token: bytes = b"token--1", part: int = 0) -> Head:
        log = self.open()
        return log.append([Chunk(part, each) for each in contents], [Chunk(0, snapshot)], token)


def test_a_new_task_has_no_state_and_a_restored_one_all_changes_in_order() -> None:
    state = Variables()
    assert list(state.open().whole()) == []
    state.append(b"a", b"b")
    state.append(b"c", part=2)
    assert list(state.open().whole()) == [Chunk(0, b"a"), Chunk(0, b"b"), Chunk(2, b"c")]


def test_a_kept_task_of_the_newest_version_reads_nothing() -> None:
    state = Variables()
    head = state.append(b"a", token=b"token--1")
    changes = state.open().since(head.next, b"token--1")
    assert changes is not None
    assert list(changes) == []
    assert state.reads == 0


def test_a_kept_task_that_is_behind_reads_only_what_it_misses() -> None:
    state = Variables()
    head = state.append(b"a", token=b"token--1")
    state.append(b"b", token=b"token--2")
    changes = state.open().since(head.next, b"token--1")
    assert changes is not None
    assert list(changes) == [Chunk(0, b"b")]


def test_a_kept_task_of_an_attempt_that_was_repeated_is_not_used() -> None:
    state = Variables()
    state.append(b"a", token=b"token--1")
    head = state.append(b"b", token=b"other---")  # the repeated attempt; the task has b"token--2"
    assert state.open().since(head.next, b"token--2") is None
    state.append(b"c", token=b"token--3")
    assert state.open().since(head.next, b"token--2") is None
    assert state.open().since(head.next + 5, b"token--3") is None, "a version that was never committed"


def test_a_long_log_is_replaced_by_a_snapshot_and_deleted_later() -> None:
    state = Variables()
    half = b"x" * (LOG_BYTES_MIN // 2 - 100)
    first = state.append(half, token=b"token--1")
    state.append(half, token=b"token--2")
    head = state.append(half, token=b"token--3", snapshot=b"all of it")
    assert list(state.open().whole()) == [Chunk(0, b"all of it")]
    assert head.log_bytes == 0
    changes = state.open().since(first.next, b"token--1")
    assert changes is not None
    assert [len(each.content) for each in changes] == [len(half)] * 2, "a task that is behind needs no snapshot"
    state.append(b"d", token=b"token--4")
    assert len(state.chunks) == 2
    assert list(state.open().whole()) == [Chunk(0, b"all of it"), Chunk(0, b"d")]
    assert state.open().since(first.next, b"token--1") is None, "what it misses has been deleted"


def test_old_chunks_are_deleted_a_few_in_each_batch() -> None:
    state = Variables()
    state.append(*[b"x" * (LOG_BYTES_MIN // 50)] * 60)
    assert len(state.chunks) == 61
    state.append(b"a")
    assert len(state.chunks) == 62 - DELETED_MIN


def test_a_state_over_the_limit_is_refused() -> None:
    state = Variables()
    with pytest.raises(StateTooLarge, match=r"task 0_0 has 2,011 bytes; task.state.max.bytes is 1,000"):
        state.open(bytes_max=1000).append([Chunk(0, b"x" * 2000)], [Chunk(0, b"x" * 2000)], b"token--1")


def test_a_state_of_another_format_or_with_a_missing_chunk_is_refused() -> None:
    state = Variables()
    state.append(b"a")
    del state.chunks[0]
    with pytest.raises(StateCorrupt, match="chunk 0 of the state of task 0_0 is missing"):
        list(state.open().whole())
    state.head = tuple(Head(format=9))
    with pytest.raises(StateCorrupt, match="has format 9; this release reads format 1"):
        state.open()
