"""Topologies that are not valid are refused with what to do; topics that are joined must be co-partitioned."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from barnabas.streams import App, TopologyError, drive, hopping, tumbling
from barnabas.streams.durations import milliseconds
from barnabas.streams.topology.copartition import check_partitions, task_counts
from barnabas.streams.topology.picture import mermaid


def joined() -> App:
    app = App("joined")
    app.stream("left", value=str).join(app.table("right", value=str), lambda one, other: one + other).to(
        "out", value=str
    )
    return app


def test_joined_topics_need_the_same_number_of_partitions() -> None:
    with pytest.raises(TopologyError, match="left has 2, right has 3; call repartition"):
        check_partitions(joined().topology(), {"left": 2, "right": 3})


def test_missing_topics_are_named() -> None:
    with pytest.raises(TopologyError, match="source topics do not exist: right; create them"):
        check_partitions(joined().topology(), {"left": 2})


def test_a_repartition_has_as_many_partitions_as_what_it_is_joined_with() -> None:
    app = App("again")
    stream = app.stream("left", value=str).select_key(lambda value: value, key=str)
    stream.join(app.table("right", value=str), lambda one, other: one + other, name="j").to("out", value=str)
    topology = app.topology()
    partitions = check_partitions(topology, {"left": 2, "right": 5})
    assert partitions == {"left": 2, "right": 5, "j-repartition": 5}
    assert task_counts(topology, partitions) == {0: 2, 1: 5}


def test_a_repartition_has_as_many_partitions_as_its_source() -> None:
    app = App("again")
    app.stream(["one", "two"], value=str).group_by(len, key=int).count(store="n").to_stream().to("out", value=int)
    assert check_partitions(app.topology(), {"one": 2, "two": 7})["n-repartition"] == 7


def test_the_number_of_partitions_of_a_repartition_can_be_set() -> None:
    app = App("again")
    app.stream("in", value=str).repartition(partitions=9, name="wide").to("out")
    assert check_partitions(app.topology(), {"in": 2})["wide-repartition"] == 9


def twice(app: App) -> None:
    app.stream("a", name="x")
    app.stream("b", name="x")


def overlapping(app: App) -> None:
    app.stream(["a", "b"])
    app.stream(["b", "c"])


def two_tables(app: App) -> None:
    app.table("a")
    app.table("a")


def same_store(app: App) -> None:
    app.stream("a").group_by_key().count(store="s")
    app.stream("b").group_by_key().aggregate(list, lambda found, value: found, store="s")


def no_window(app: App) -> None:
    app.table("a").suppress("window_closes")


def early_final(app: App) -> None:
    windows = app.stream("a").group_by_key().window(tumbling("1s"))
    windows.count().suppress("window_closes", max_records=1, when_full="emit_early")


def grace_without_versions(app: App) -> None:
    app.stream("a").join(app.table("b"), lambda one, other: one, grace="1s")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (twice, "two nodes have the name x"),
        (overlapping, "overlapping sets of topics"),
        (two_tables, "topic a is read by"),
        (same_store, "two different stores have the name s"),
        (no_window, "needs a windowed aggregation before it"),
        (early_final, "cannot emit early"),
        (grace_without_versions, "needs a versioned table"),
        (lambda app: None, "has no streams or tables"),
    ],
)
def test_what_is_not_valid_is_refused(build: Callable[[App], None], message: str) -> None:
    def topology() -> None:
        app = App("wrong")
        build(app)
        app.topology()

    with pytest.raises(TopologyError, match=message):
        topology()


def test_an_application_id_is_a_name_of_topics() -> None:
    with pytest.raises(TopologyError, match="'a b' is not an application id"):
        App("a b")


@pytest.mark.parametrize(
    ("duration", "expected"), [("500ms", 500), ("1h30m", 5_400_000), ("7d", 604_800_000), (timedelta(seconds=2), 2_000)]
)
def test_durations_are_texts_or_timedeltas(duration: str | timedelta, expected: int) -> None:
    assert milliseconds(duration) == expected


@pytest.mark.parametrize("duration", ["", "5", "5 m", "m", "-5m", timedelta(seconds=-1)])
def test_what_is_no_duration_is_refused(duration: str | timedelta) -> None:
    with pytest.raises(TopologyError):
        milliseconds(duration)


def test_windows_are_checked() -> None:
    with pytest.raises(TopologyError, match="larger than its size"):
        hopping("1s", "2s")
    with pytest.raises(TopologyError, match="larger than zero"):
        tumbling("0s")


def test_a_pattern_reads_all_topics_that_match() -> None:
    app = App("pattern")
    app.stream(re.compile("orders-.*"), value=str).to("out")
    with drive(app) as driver:
        driver.send("orders-eu", "x", key="k")
        driver.send("orders-us", "y", key="l")
        assert driver.table("out") == {"k": "x", "l": "y"}
    assert "(topics: orders-.*)" in app.describe()


def test_the_description_ends_with_how_it_runs() -> None:
    app = App("app")
    app.stream("in", value=str).group_by(len, key=int).count(store="n")
    text = app.describe()
    assert text.startswith("Topologies:\n   Sub-topology: 0\n")
    assert "repartitioned by Spark's shuffle, without a topic: n-repartition" in text
    assert "store n: changelog topic app-n-changelog" in text


def test_the_picture_has_topics_nodes_and_stores() -> None:
    picture = mermaid(joined().topology())
    assert picture.startswith("flowchart TB\n")
    for part in ('[/"left"/]', '[/"out"/]', '[("right-STATE-STORE-', '"KSTREAM-JOIN-'):
        assert part in picture


def test_the_description_names_the_topic_of_a_foreign_key_joins_answers() -> None:
    app = App("owned")
    pets, owners = app.table("pets", value=str), app.table("owners", value=str)
    pets.join(owners, lambda owner, city: city, by=lambda owner: owner, name="fk").to_stream().to("out")
    text = app.describe()
    assert "read from a topic in a later batch: owned-fk-subscription-response-topic" in text
    assert "repartitioned by Spark's shuffle, without a topic: fk-subscription-registration-topic" in text
