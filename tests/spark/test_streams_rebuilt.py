"""Applications that lose their checkpoint continue from the cluster, with the output of an undisturbed run."""

from __future__ import annotations

import json
from typing import Any

import pytest
import streams_apps
from streams_running import Playground

from barnabas.streams import App, drive
from barnabas.streams.host.checkpoint import CheckpointMismatch


def test_every_part_of_the_state_survives_a_deleted_checkpoint(stage: Any) -> None:
    """Tables, windows, a suppress buffer, a windowed join, a store with a time to live: all that a task has."""
    app = streams_apps.everything
    ground = Playground(stage, app, {"e-orders": 2, "e-names": 2, "e-clicks": 2, "e-out": 1})
    steps = [
        [("e-names", "1", "Ann", 0), ("e-orders", "1", "tea", 10), ("e-clicks", "2", "x", 20)],
        [("e-orders", "2", "rum", 500), ("e-names", "2", "Bo", 700), ("e-clicks", "1", "y", 900)],
        [("e-names", "1", "Ada", 2_000), ("e-orders", "1", "milk", 2_100), ("e-clicks", "2", "z", 2_500)],
        [("e-clicks", "1", "w", 9_000), ("e-clicks", "2", "w", 9_000), ("e-orders", "2", "gin", 9_100)],
    ]
    with drive(app, partitions={"e-orders": 2, "e-names": 2, "e-clicks": 2, "e-out": 1}) as driver:
        for step in steps:
            for topic, key, value, at in step:
                ground.send(topic, [(key, value)], at=at)
                driver.send(topic, value, key=key, at=at)
            ground.run()
            ground.lose_checkpoint()
        expected = [(each.key, each.value) for each in driver.read("e-out")]
    assert sorted(ground.records("e-out")) == sorted(expected)
    assert len(expected) > 8


def test_repartitions_and_a_global_table_survive_a_deleted_checkpoint(stage: Any) -> None:
    ground = Playground(stage, streams_apps.ranked, {"r-orders": 3, "r-prices": 1, "r-largest": 1})
    ground.send("r-prices", [("a", "2")])
    ground.send("r-orders", [("1", "anna"), ("2", "bea"), ("3", "anna")])
    ground.run()
    ground.lose_checkpoint()
    ground.send("r-prices", [("b", "9")])
    ground.send("r-orders", [("4", "adam"), ("5", "bea")])
    ground.run()
    ground.lose_checkpoint()
    ground.send("r-orders", [("6", "adam")])
    ground.run()
    updates: dict[str | None, list[str | None]] = {}
    for key, value in ground.records("r-largest"):
        updates.setdefault(key, []).append(value)
    with streams_apps.ranked.store("orders-by-letter", bootstrap_servers=stage.servers) as counts:
        answer = counts.get("a")
    assert answer.value == 4
    read = sum(offset for offset in answer.position["r-orders"].values())
    assert 4 <= read <= 6, "orders of other letters count if a task that read them has sent others here"
    assert updates == {"a": ["1 at 2", "2 at 2", "3 at 2", "4 at 2"], "b": ["1 at None", "2 at 9"]}


def test_a_checkpoint_of_before_the_rebuild_and_another_topology_are_refused(stage: Any) -> None:
    ground = Playground(stage, streams_apps.shelf, {"s-books": 1, "s-out": 1})
    ground.send("s-books", [("1", "x")])
    ground.run()
    ground.checkpoints = f"{stage.directory}/other"
    ground.send("s-books", [("1", "y")])
    ground.run()
    assert ground.records("s-out") == [("1", "1"), ("1", "2")]
    metrics = json.loads(ground.table("shelf-task-metrics-changelog")["0_0"] or "")
    assert metrics["consumed"] == [{"node": "KSTREAM-SOURCE-0000000000", "topic": "s-books", "records": 2, "bytes": 4}]
    assert [each["records"] for each in metrics["produced"]] == [2], "counters survive a lost checkpoint"
    assert metrics["keys"] == {"shelved": 1}
    ground.checkpoints = str(stage.directory)
    with pytest.raises(CheckpointMismatch, match=r"started from another checkpoint since: .*/other/shelf"):
        ground.start(once=True)
    changed = App("shelf")
    changed.module = streams_apps.shelf.module
    changed.stream("s-books", value=str).group_by_key().count(store="more").to_stream().to("s-out")
    streams_apps.changed_shelf = changed  # type: ignore[attr-defined]
    ground.app, ground.checkpoints = changed, f"{stage.directory}/third"
    with pytest.raises(
        CheckpointMismatch, match=r"(?s)state in the cluster of shelf .*- .*shelved.*\+ .*more.*reset shelf"
    ):
        ground.start(once=True)
