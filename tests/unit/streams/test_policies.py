"""``on_error=`` is a parameter of every operator that can fail, and each failure reaches the policy of its own node."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from barnabas.streams import (
    App,
    CogroupedStream,
    DeadLetter,
    FixedKeyProcessor,
    Functions,
    GroupedStream,
    GroupedTable,
    ProcessingFailed,
    Processor,
    Record,
    Store,
    Stream,
    Table,
    drive,
    hopping,
    session,
    sliding,
    tumbling,
)
from barnabas.streams.cogrouped import WindowedCogroupedStream
from barnabas.streams.windowed import SessionWindowedStream, TimeWindowedStream

DEAD = DeadLetter("dead")
# Operators without a function and without a serde: they cannot fail. A full buffer of suppress() stops by its own rule.
CANNOT_FAIL = {"merge", "to_stream", "suppress", "window", "cogroup", "emit_on_window_close"}


def refuse(*_: Any) -> NoReturn:
    raise ValueError("refused")


def lambda_of(parameters: int) -> Any:
    return [refuse, lambda one: refuse(), lambda one, two: refuse(), lambda one, two, three: refuse()][parameters]


@pytest.mark.parametrize(
    "kind",
    [
        App,
        Stream,
        Table,
        GroupedStream,
        GroupedTable,
        TimeWindowedStream,
        SessionWindowedStream,
        CogroupedStream,
        WindowedCogroupedStream,
    ],
)
def test_every_operator_that_can_fail_has_the_parameter(kind: type) -> None:
    operators = {
        name: function
        for name, function in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and "self" in inspect.signature(function).parameters
    }
    missing = []
    for name, function in operators.items():
        parameters = inspect.signature(function).parameters
        takes = "on_error" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        if name not in CANNOT_FAIL and not takes and (kind is not App or name in ("stream", "table", "global_table")):
            missing.append(name)
    assert missing == []


class Refusing(Processor[str, int, str, int]):
    def process(self, record: Record[str, int]) -> None:
        refuse()


class RefusingValues(FixedKeyProcessor[str, int, int]):
    def process(self, record: Record[str, int]) -> None:
        refuse()


class RefusingLater(Processor[str, int, str, int]):
    seen: Store[str, int]

    def init(self) -> None:
        self.schedule("1s", refuse, by="stream_time")

    def process(self, record: Record[str, int]) -> None:
        self.seen[record.key] = record.value


def joined(app: App) -> Any:
    return app.stream("other", value=int)


REFUSED: Functions[int] = Functions(refuse, refuse)

# What each node does with a record of the topic "in"; its policy is the only one that writes dead letters.
NODES: dict[str, Callable[[App, Stream[str, int]], Any]] = {
    "filter": lambda app, s: s.filter(lambda_of(1), on_error=DEAD),
    "filter_not": lambda app, s: s.filter_not(lambda_of(2), on_error=DEAD),
    "map": lambda app, s: s.map(lambda_of(1), on_error=DEAD),
    "map_values": lambda app, s: s.map_values(lambda_of(2), on_error=DEAD),
    "flat_map": lambda app, s: s.flat_map(lambda_of(1), on_error=DEAD),
    "flat_map_values": lambda app, s: s.flat_map_values(lambda_of(1), on_error=DEAD),
    "select_key": lambda app, s: s.select_key(lambda_of(1), on_error=DEAD),
    "peek": lambda app, s: s.peek(lambda_of(1), on_error=DEAD),
    "foreach": lambda app, s: s.foreach(lambda_of(1), on_error=DEAD),
    "split": lambda app, s: s.split(lambda_of(1), on_error=DEAD),
    "to": lambda app, s: s.to("out", value=REFUSED, on_error=DEAD),
    "to by function": lambda app, s: s.to(lambda_of(1), on_error=DEAD),
    "to a bad topic": lambda app, s: s.to(lambda value: "no topic", on_error=DEAD),
    "to a large record": lambda app, s: s.map_values(lambda value: "x" * 2_000_000).to("out", on_error=DEAD),
    "to_table": lambda app, s: s.map(lambda k, v: (object(), v)).to_table(on_error=DEAD),
    "repartition": lambda app, s: s.repartition(value=REFUSED, on_error=DEAD),
    "group_by": lambda app, s: s.group_by(lambda_of(1), on_error=DEAD).count(),
    "group_by_key": lambda app, s: s.map(lambda k, v: (object(), v)).group_by_key(on_error=DEAD).count(),
    "reduce": lambda app, s: s.group_by_key().aggregate(lambda: 0, lambda_of(2), on_error=DEAD),
    "aggregate with key": lambda app, s: s.group_by_key().aggregate(lambda: 0, lambda_of(3), on_error=DEAD),
    "initializer": lambda app, s: s.group_by_key().aggregate(refuse, lambda a, v: a, on_error=DEAD),
    "tumbling": lambda app, s: (
        s.group_by_key().window(tumbling("1s")).aggregate(lambda: 0, lambda_of(2), on_error=DEAD)
    ),
    "hopping": lambda app, s: (
        s.group_by_key().window(hopping("2s", advance="1s")).aggregate(refuse, lambda a, v: a, on_error=DEAD)
    ),
    "sliding": lambda app, s: s.group_by_key().window(sliding("1s")).aggregate(lambda: 0, lambda_of(2), on_error=DEAD),
    "session": lambda app, s: (
        s.group_by_key().window(session("1s")).aggregate(lambda: 0, lambda_of(2), max, on_error=DEAD)
    ),
    "cogroup": lambda app, s: s.group_by_key().cogroup(lambda_of(2)).aggregate(lambda: 0, on_error=DEAD),
    "cogroup of windows": lambda app, s: (
        s.group_by_key().cogroup(lambda_of(2)).window(tumbling("1s")).aggregate(lambda: 0, on_error=DEAD)
    ),
    "cogroup of sessions": lambda app, s: (
        s.group_by_key().cogroup(lambda_of(2)).window(session("1s")).aggregate(lambda: 0, max, on_error=DEAD)
    ),
    "stream-stream left join": lambda app, s: s.outer_join(
        joined(app), lambda_of(2), within="0ms", before="0ms", after="0ms", on_error=DEAD
    ),
    "stream-table left join": lambda app, s: s.left_join(app.table("other", value=int), lambda_of(2), on_error=DEAD),
    "global table key": lambda app, s: s.join(
        app.global_table("other", value=int), lambda_of(2), by=lambda_of(1), on_error=DEAD
    ),
    "table filter": lambda app, s: s.to_table().filter(lambda_of(1), on_error=DEAD),
    "table map": lambda app, s: s.to_table().map_values(lambda_of(1), on_error=DEAD),
    "table group_by": lambda app, s: s.to_table().group_by(lambda_of(1), on_error=DEAD).count(),
    "table reduce": lambda app, s: (
        s.to_table().group_by(lambda k, v: (k, v)).aggregate(lambda: 0, lambda_of(2), max, on_error=DEAD)
    ),
    "table join": lambda app, s: s.to_table().left_join(app.table("other", value=int), lambda_of(2), on_error=DEAD),
    "foreign-key join": lambda app, s: s.to_table().join(
        app.table("other", value=int), lambda_of(2), by=lambda_of(1), on_error=DEAD
    ),
    "foreign-key joiner": lambda app, s: s.to_table().left_join(
        app.table("other", value=int), lambda_of(2), by=lambda value: "x", on_error=DEAD
    ),
    "process": lambda app, s: s.process(Refusing, on_error=DEAD),
    "process_values": lambda app, s: s.process_values(RefusingValues, on_error=DEAD),
    "punctuator": lambda app, s: s.process(RefusingLater, on_error=DEAD),
}


@pytest.mark.parametrize("node", NODES)
def test_a_failure_reaches_the_policy_of_its_node(node: str) -> None:
    app = App("failing")
    NODES[node](app, app.stream("in", value=int))
    with drive(app) as driver:
        driver.send("in", 1, key="k", at=5_000)
        driver.send("in", 2, key="k", at=60_000)  # closes the window of an outer join
        letters = driver.read_rows("dead")
        headers = dict(letters[0].headers)
    assert headers["__streams.errors.message"]
    assert [key for key, _ in letters[0].headers if key.startswith("__streams.errors.")] == [
        "__streams.errors.exception",
        "__streams.errors.message",
        "__streams.errors.stacktrace",
        "__streams.errors.topic",
        "__streams.errors.partition",
        "__streams.errors.offset",
    ]


@pytest.mark.parametrize("source", ["stream", "table", "global_table"])
def test_a_source_has_a_policy_of_its_own(source: str) -> None:
    app = App("failing")
    if source == "stream":
        app.stream("in", value=int, on_error=DEAD).to("out")
    elif source == "table":
        app.table("in", value=int, store="rows", on_error=DEAD)
    else:
        app.stream("more").join(app.global_table("in", value=int, on_error=DEAD), lambda a, b: a, by=lambda a: "k")
    with drive(app) as driver:
        driver.send_bytes("in", b"k", b"not a number")
        assert [row.value for row in driver.read_rows("dead")] == [b"not a number"]


def test_a_repartitioned_record_has_the_full_name_of_its_topic() -> None:
    app = App("failing", on_error=DEAD)
    app.stream("in", value=int).group_by(lambda value: "g", key=str, name="grouped").aggregate(lambda: 0, lambda_of(2))
    with drive(app) as driver:
        driver.send("in", 1, key="k")
        (letter,) = driver.read_rows("dead")
    assert dict(letter.headers)["__streams.errors.topic"] == b"failing-grouped-repartition"
    assert (letter.key, letter.value) == (b"g", b"1")


def test_a_key_that_no_store_can_hold_is_an_error_of_the_record() -> None:
    app = App("failing", on_error=DEAD)
    app.stream("in", key=dict[str, int], value=int).to_table(store="rows")
    with drive(app) as driver:
        driver.send("in", 1, key={"a": 1})
        (letter,) = driver.read_rows("dead")
    assert b"unhashable" in (dict(letter.headers)["__streams.errors.message"] or b"")


def test_a_full_buffer_stops_the_application_whatever_the_policy_is() -> None:
    app = App("failing", on_error=DEAD)
    app.table("in", value=int).suppress(until="1m", max_records=1, when_full="fail", name="held").to_stream().to("out")
    with drive(app) as driver:
        driver.send("in", 1, key="a")
        with pytest.raises(ProcessingFailed, match="held: the buffer is full with 2 records"):
            driver.send("in", 1, key="b")
