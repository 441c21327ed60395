"""A task: the choice between partitions, rows for other tasks, changelogs, and state that comes back."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.partitions.partitioner import of_key
from barnabas.streams import App, StreamsError, tumbling
from barnabas.streams.errors import StateCorrupt
from barnabas.streams.runtime.task import InputRecord, Task
from barnabas.streams.serdes import Functions


def record(topic: str, partition: int, offset: int, timestamp: int, key: str = "k", value: str = "v") -> InputRecord:
    return topic, partition, offset, timestamp, key.encode(), value.encode(), ()


def task_of(app: App, number: int = 0, partition: int = 0, **options: Any) -> Task:
    topology = app.topology()
    task = Task(topology, number, partition, partitions=dict.fromkeys(topology.internal_topics, 4), **options)
    task.begin(time_ms=0, seed=0)
    return task


def merged() -> App:
    app = App("merged")
    app.stream(["a", "b"], value=str).to("out")
    return app


def test_the_smallest_head_of_the_partitions_comes_first() -> None:
    task = task_of(merged())
    rows = task.process(
        [
            record("a", 0, 0, 10, value="a10"),
            record("a", 0, 1, 5, value="a5"),
            record("b", 0, 0, 7, value="b7"),
            record("a", 1, 0, 12, value="c12"),
            record("b", 0, 1, 11, value="b11"),
        ]
    )
    # a5 is behind a10 in its partition, so it comes after it although it is older.
    assert [row.value for row in rows] == [b"b7", b"a10", b"a5", b"b11", b"c12"]
    assert task.stream_time == 12


def grouped() -> App:
    app = App("grouped")
    app.stream("in", value=str).group_by(lambda value: value, key=str).count(store="n").to_stream().to("out", value=int)
    return app


def test_internal_rows_go_to_the_partition_of_their_key() -> None:
    task = task_of(grouped())
    rows = task.process([record("in", 0, number, number, value=f"w{number}") for number in range(20)])
    assert {row.topic for row in rows} == {"n-repartition"}
    for row in rows:
        assert row.is_internal
        assert row.key is not None
        assert row.partition == of_key("n-repartition", row.key, 4)


def test_a_commit_has_what_changed_and_no_more() -> None:
    first, second = task_of(grouped()), task_of(grouped(), 1, 2)
    rows = first.process([record("in", 0, 0, 5, value="a"), record("in", 0, 1, 6, value="b")])
    second.process([(row.topic, 2, n, row.timestamp, row.key, row.value, ()) for n, row in enumerate(rows)])
    changelog = second.commit().changelog
    assert [(row.topic, row.partition, row.key, row.value, row.timestamp) for row in changelog] == [
        ("grouped-n-changelog", 2, b"a", b"1", 5),
        ("grouped-n-changelog", 2, b"b", b"1", 6),
    ]
    assert second.commit().changelog == []


def test_chunks_are_small_and_restore_the_task() -> None:
    app = App("big")
    app.table("in", value=str, store="rows")
    task = task_of(app)
    task.process([record("in", 0, number, number, key=f"k{number}", value="v" * 100) for number in range(500)])
    chunks = list(task.snapshot(limit=5_000))
    assert len(chunks) > 10
    assert max(map(len, chunks)) < 6_000
    copy = task_of(app)
    copy.restore(chunks)
    assert list(copy.snapshot()) == list(task.snapshot())
    assert copy.stream_time == 499


def test_a_blob_of_another_version_or_topology_is_refused() -> None:
    task = task_of(grouped(), 1)
    with pytest.raises(StateCorrupt, match="format version 9; this release reads version 1"):
        task.restore([b"\x09abc"])
    with pytest.raises(StateCorrupt, match="is damaged"):
        task.restore([b"\x01abc"])
    app = App("other")
    app.table("in", value=str, store="rows")
    other = task_of(app)
    other.process([record("in", 0, 0, 0)])
    with pytest.raises(StateCorrupt, match="has a store rows, which sub-topology 1 does not have"):
        task.restore(other.commit().chunks)


def test_objects_without_a_type_are_kept_only_if_they_come_back_the_same() -> None:
    app = App("untyped")
    app.stream("in", value=str).group_by_key().aggregate(dict, lambda found, value: {**found, value: (1, b"x")})
    task = task_of(app)
    task.process([record("in", 0, 0, 0)])
    copy = task_of(app)
    copy.restore(task.commit().chunks)
    (store,) = copy.stores.values()
    assert store.data == {"k": ({"v": (1, b"x")}, 0)}  # type: ignore[attr-defined]


def test_an_object_that_would_not_come_back_is_refused_with_what_to_do() -> None:
    app = App("untyped")
    app.stream("in", value=str).group_by_key().aggregate(lambda: object(), lambda found, value: found)
    task = task_of(app)
    task.process([record("in", 0, 0, 0)])
    with pytest.raises(TypeError, match="of type object cannot be kept without a type; pass key= or value="):
        task.commit()


def test_a_pair_of_functions_is_a_serde() -> None:
    app = App("functions")
    serde = Functions(lambda number: str(number).encode(), lambda data: int(data))
    app.stream("in", value=serde).map_values(lambda number: number + 1, value=serde).to("out")
    assert [row.value for row in task_of(app).process([record("in", 0, 0, 0, value="41")])] == [b"42"]


def test_the_changelog_of_windows_has_kafkas_keys() -> None:
    app = App("windows")
    app.stream("in", value=str).group_by_key().window(tumbling("10ms")).count(store="n")
    task = task_of(app)
    task.process([record("in", 0, 0, 25)])
    (row,) = task.commit().changelog
    assert row.key == b"k" + (20).to_bytes(8, "big") + bytes(4)


def test_the_partition_of_a_windowed_key_is_that_of_the_key() -> None:
    app = App("windows")
    app.stream("in", value=str).group_by_key().window(tumbling("10ms")).count().to_stream().to("out", value=int)
    topology = app.topology()
    task = Task(topology, 0, 0, partitions={"out": 7})
    task.begin(time_ms=0, seed=0)
    (row,) = task.process([record("in", 0, 0, 25)])
    assert row.partition == of_key("out", b"k", 7)


def test_a_full_buffer_that_must_not_emit_early_stops_the_task() -> None:
    app = App("full")
    app.table("in", value=str).suppress("1h", max_records=1, when_full="fail").to_stream().to("out")
    task = task_of(app)
    task.process([record("in", 0, 0, 0, key="a")])
    with pytest.raises(StreamsError, match="the buffer is full with 2 records"):
        task.process([record("in", 0, 1, 0, key="b")])
