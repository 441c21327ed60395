"""The records of the state topic: chunks in pieces, deletions, and what is refused."""

from __future__ import annotations

import pytest

from barnabas.streams.errors import StateCorrupt
from barnabas.streams.host import state_topic
from barnabas.streams.host.state import CHANGES, SNAPSHOT, Chunk, Entry
from barnabas.streams.host.state_topic import Restored, StateTopic, assemble, records_of_entries


def test_a_log_with_a_snapshot_and_deleted_chunks_is_restored_from_the_snapshot_on() -> None:
    records = list(records_of_entries("0_1", [Entry(0, CHANGES, Chunk(0, b"a"))], first=0))
    records += records_of_entries(
        "0_1",
        [Entry(1, CHANGES, Chunk(0, b"b")), Entry(2, SNAPSHOT, Chunk(0, b"all")), Entry(0, CHANGES, None)],
        first=2,
    )
    records += records_of_entries("0_1", [Entry(3, CHANGES, Chunk(2, b""))], first=2)
    records += records_of_entries("0_11", [Entry(9, CHANGES, Chunk(0, b"of another task"))], first=9)
    assert assemble(records, "0_1") == Restored([Chunk(0, b"all"), Chunk(2, b"")], 1, 4)
    assert assemble(records, "1_1") is None


def test_large_chunks_are_several_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_topic, "PIECE_BYTES_MAX", 4)
    records = list(records_of_entries("0_0", [Entry(7, CHANGES, Chunk(1, b"0123456789"))], first=7))
    assert [key for key, _ in records] == [b"0_0/7/0", b"0_0/7/1", b"0_0/7/2"]
    assert assemble(records, "0_0") == Restored([Chunk(1, b"0123456789")], 7, 8)
    with pytest.raises(StateCorrupt, match="chunk 7 of task 0_0 is incomplete"):
        assemble(records[:2], "0_0")


def test_missing_chunks_are_noticed() -> None:
    records = list(records_of_entries("0_0", [Entry(n, CHANGES, Chunk(0, b"x")) for n in range(3)], first=0))
    with pytest.raises(StateCorrupt, match="chunk 1 of task 0_0 is missing"):
        assemble([records[0], records[2]], "0_0")


def test_a_task_without_records_before_the_end_has_no_state() -> None:
    assert StateTopic("t", 4, {}, ends={0: 3}).restore(1, "0_1") is None
    assert StateTopic("t", 4, {}).partition(6) == 2
