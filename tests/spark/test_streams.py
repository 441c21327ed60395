"""Streams applications on Spark: results across batches and restarts, repartitions, global tables, ticks, limits."""

from __future__ import annotations

import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import streams_apps
from streams_running import Playground

from barnabas.spark.errors import PipelineFailed
from barnabas.streams import drive
from barnabas.streams.host.checkpoint import NAME, CheckpointMismatch
from barnabas.streams.host.labels import labels, partition_of
from barnabas.streams.host.rebuild import RebuildRefused


def test_words_are_counted_across_batches_and_restarts(stage: Any) -> None:
    ground = Playground(stage, streams_apps.words, {"lines": 2, "word-counts": 2})
    ground.send("lines", [("1", "a b a"), ("2", "b c")])
    ground.run()
    ground.send("lines", [("1", "a"), ("2", "c c")])
    ground.run()
    assert ground.table("word-counts") == {"a": "3", "b": "2", "c": "3"}
    assert len(ground.records("word-counts")) == 8, "every update is written"
    assert ground.table("words-counts-changelog") == {"a": "3", "b": "2", "c": "3"}
    assert ground.committed("lines") == 4
    note = stage.directory / "words" / NAME / "note.json"
    note.write_text(note.read_text().replace("word-counts", "other"))
    with pytest.raises(CheckpointMismatch, match=r"(?s)another topology.*- .*other.*\+ .*word-counts"):
        ground.start(once=True)


def test_two_tables_are_joined_as_the_test_driver_joins_them(stage: Any) -> None:
    ground = Playground(stage, streams_apps.people, {"names": 2, "cities": 2, "located": 2})
    steps: list[list[tuple[str, str, str | None]]] = [
        [("names", "1", "Ann"), ("cities", "1", "Brno"), ("names", "2", "Bo")],
        [("cities", "2", "Oslo"), ("names", "1", None), ("cities", "1", "Rome")],
        [("names", "1", "Ada"), ("cities", "2", None)],
    ]
    with drive(streams_apps.people, partitions=2) as driver:
        at = count()
        for step in steps:
            for topic, key, value in step:
                now = next(at)  # between topics the smallest timestamp decides, so they must differ
                ground.send(topic, [(key, value)], at=now)
                driver.send(topic, value, key=key, at=now)
            ground.run()
        expected = [(each.key, each.value) for each in driver.read("located")]
    found = ground.records("located")
    for key in ("1", "2"):
        assert [each for each in found if each[0] == key] == [each for each in expected if each[0] == key]
    assert ground.table("people-located-changelog") == {"1": "Ada in Rome", "2": None}


def test_two_repartitions_are_two_operators_of_one_query(stage: Any) -> None:
    ground = Playground(stage, streams_apps.sums, {"orders": 3, "largest": 1}, scheme="file://")
    orders = [("anna", 5), ("adam", 2), ("bea", 1), ("anna", 4), ("adam", 9), ("bea", 1)]
    for number, (customer, total) in enumerate(orders):
        ground.send("orders", [(str(number), f'{{"customer": "{customer}", "total": {total}}}')], at=number)
    run = ground.run()
    assert len(stage.progress(run.queries[0])[-1]["stateOperators"]) == 2
    assert ground.table("largest") == {"a": "11", "b": "2"}
    ground.send("orders", [("9", '{"customer": "adam", "total": 1}')], at=9)
    ground.run()
    assert ground.table("largest") == {"a": "12", "b": "2"}


def test_each_task_has_a_copy_of_a_global_table(stage: Any) -> None:
    ground = Playground(stage, streams_apps.rates, {"prices": 2, "sales": 2, "priced": 1})
    ground.send("prices", [("tea", "3"), ("milk", "1")])
    ground.send("sales", [("1", "tea"), ("2", "milk"), ("3", "rum")])
    ground.run()
    assert ground.table("priced") == {"1": "tea for 3", "2": "milk for 1"}
    ground.send("prices", [("rum", "9")])
    ground.send("sales", [("4", "rum"), ("5", "tea")])
    ground.run()
    assert ground.table("priced") == {"1": "tea for 3", "2": "milk for 1", "4": "rum for 9", "5": "tea for 3"}


def test_the_answers_of_a_foreign_key_join_come_back_in_a_later_batch(stage: Any) -> None:
    ground = Playground(stage, streams_apps.owned, {"pets": 2, "owners": 2, "owned-pets": 1})
    ground.send("pets", [("rex", "ann"), ("tom", "bob"), ("pip", "ann")])
    ground.send("owners", [("ann", "Brno"), ("bob", "Oslo")])
    ground.run()
    assert ground.table("owned-pets") == {"rex": "ann of Brno", "pip": "ann of Brno", "tom": "bob of Oslo"}


@pytest.mark.slow
def test_wall_clock_punctuators_are_called_without_new_records(stage: Any) -> None:
    ground = Playground(stage, streams_apps.pulses, {"beats": 1, "pulse": 1})
    ground.send("beats", [("1", "x"), ("2", "y")])
    run = ground.start(trigger="100 milliseconds")
    try:
        deadline = time.monotonic() + 100
        while len(ground.records("pulse")) < 3 and time.monotonic() < deadline:
            assert run.failure() is None
            time.sleep(0.5)
    finally:
        run.stop()
    assert set(ground.records("pulse")) == {("all", "2")}


def test_a_state_that_is_too_large_is_refused_with_a_message(stage: Any) -> None:
    ground = Playground(stage, streams_apps.large, {"blobs": 1})
    ground.send("blobs", [(str(number), "x" * 1000) for number in range(100)])
    stage.spark.conf.set("spark.barnabas.task.state.max.bytes", "50000")
    try:
        with pytest.raises(PipelineFailed, match=r"state of task 0_0 has .* task.state.max.bytes is 50,000"):
            ground.run()
    finally:
        stage.spark.conf.unset("spark.barnabas.task.state.max.bytes")


def test_the_test_driver_runs_the_same_plan_on_spark(stage: Any) -> None:
    with drive(streams_apps.words, partitions=2, on="spark") as driver:
        driver.send("lines", "a b a", key="1", at=0)
        driver.send("lines", "b", key="2", at=1)
        assert driver.table("word-counts") == {"a": 2, "b": 2}
        driver.send("lines", "a", key="2", at=2)
        assert [(each.key, each.value, each.timestamp) for each in driver.read("word-counts")][-1] == ("a", 3, 2)
        assert driver.store("counts") == {"a": 3, "b": 2}


def test_the_test_driver_moves_the_clock_on_spark(stage: Any) -> None:
    with drive(streams_apps.pulses, on="spark") as driver:
        driver.send("beats", "x", key="1")
        assert driver.read("pulse") == []
        driver.advance("1s")
        assert [(each.key, each.value, each.timestamp) for each in driver.read("pulse")] == [("all", 1, 1000)]


def test_labels_spread_tasks_as_sparks_own_hash_does(stage: Any) -> None:
    chosen = labels(12, 4)
    frame = stage.spark.createDataFrame([(each,) for each in chosen], "task int")
    rows = frame.selectExpr("task", "pmod(hash(task), 4) as part").collect()
    assert [row.part for row in rows] == [partition_of(each, 4) for each in chosen]
    assert sorted(row.part for row in rows) == sorted([0, 1, 2, 3] * 3)


def test_an_application_without_state_has_no_operator_and_writes_each_record_once(stage: Any) -> None:
    ground = Playground(stage, streams_apps.copies, {"c-in": 3, "c-out": 1, "c-dead": 1})
    for number in range(3):
        ground.send("c-in", [(str(each), f'{{"customer": "ann", "total": {each}}}') for each in range(5)], at=number)
        ground.send("c-in", [("x", '{"customer": "bob", "total": 1}')], at=number)
        run = ground.run()
    assert stage.progress(run.queries[0])[-1]["stateOperators"] == []
    assert sorted(value for _, value in ground.records("c-out")) == sorted(["10", "5", "3", "2"] * 3)
    assert [value for _, value in ground.records("c-dead")] == ['{"customer": "ann", "total": 0}'] * 3
    assert ground.committed("c-in") == 18
    ground.lose_checkpoint()
    ground.send("c-in", [("9", '{"customer": "ann", "total": 10}')], at=9)
    ground.run()
    assert len(ground.records("c-out")) == 13


def test_a_dataframe_is_joined_with_a_topic(stage: Any, tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    frames.mkdir()
    stage.spark.conf.set("spark.tests.frames", str(frames))
    ground = Playground(stage, streams_apps.framed, {"f-names": 2, "f-out": 1, "f-counted": 1})
    ground.send("f-names", [("a", "Ann"), ("b", "Bob")], at=0)
    ground.run()
    for number in range(2):
        rows = [f'{{"key": "{key}", "value": "{number}", "timestamp": "2026-01-01T00:00:0{number}Z"}}' for key in "abc"]
        (frames / f"{number}.json").write_text("\n".join([*rows, '{"key": "a"}']))
        ground.run()
    assert sorted(ground.records("f-out")) == [
        ("a", "Ann: 0"),
        ("a", "Ann: 1"),
        ("b", "Bob: 0"),
        ("b", "Bob: 1"),
        ("c", "None: 0"),
        ("c", "None: 1"),
    ]
    assert ground.table("f-counted") == {"a": "2", "b": "2", "c": "2"}
    ground.lose_checkpoint()
    with pytest.raises(RebuildRefused, match="It has the positions of the DataFrames f-files"):
        ground.run()
