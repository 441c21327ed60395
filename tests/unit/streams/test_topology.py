"""Topologies that are not valid are refused with what to do; topics that are joined must be co-partitioned."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import timedelta
from xml.etree import ElementTree

import pytest

from barnabas.streams import App, TopologyError, drive, hopping, tumbling
from barnabas.streams.durations import milliseconds
from barnabas.streams.topology.copartition import check_partitions, task_counts
from barnabas.streams.topology.drawing import svg
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


def looped() -> App:
    app = App("looped")
    left, right = app.table("left", value=str), app.table("right", value=str)
    left.join(right, lambda one, other: one + other, by=lambda value: value, value=str).to_stream().to("out")
    return app


@pytest.mark.parametrize("made", [joined, looped])
def test_the_drawing_has_a_place_for_everything_and_no_two_overlap(made: Callable[[], App]) -> None:
    topology = made().topology()
    picture = ElementTree.fromstring(svg(topology))
    name = "{http://www.w3.org/2000/svg}"
    labels = {each.text for each in picture.iter(f"{name}text")}
    internal = {topology.decorate(topic) for topic in topology.internal_topics}
    assert labels >= {*topology.nodes, *topology.stores, *topology.source_topics, *topology.sink_topics, *internal}
    places = [
        (float(each.get("x", 0)), float(each.get("y", 0)), float(each.get("width", 0)))
        for each in picture.iter(f"{name}rect")
        if each.get("class") in ("node", "topic")
    ]
    for one, other in itertools.combinations(sorted(places), 2):
        assert one[1] != other[1] or one[0] + one[2] <= other[0], "two places of one row overlap"
    assert svg(topology) == svg(made().topology())


def test_names_are_escaped_in_the_drawing() -> None:
    app = App("escaped")
    app.stream(re.compile("a<b&c")).to("out")
    assert "a&lt;b&amp;c" in app.picture("svg")
