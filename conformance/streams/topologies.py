"""The topologies of the judge, by name. The Java side, ``java/Topologies.java``, has the same ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.streams import (
    LONG,
    App,
    FixedKeyProcessor,
    Processor,
    Record,
    SessionStore,
    Store,
    Stream,
    Table,
    WindowStore,
    hopping,
    session,
    sliding,
    store,
    tumbling,
)
from barnabas.streams.serdes import WindowedSerde

Build = Callable[[App], None]
ALL: dict[str, Build] = {}


def topics(name: str) -> set[str]:
    """The topics that a topology reads."""
    if "three" in name or name == "cogroup":
        return {"left", "right", "third"}
    if "self" in name:
        return {"left"}
    return {"left", "right"} if any(word in name for word in ("join", "merge", "cogroup")) else {"left"}


def topology(build: Build) -> Build:
    ALL[build.__name__] = build
    return build


def left(app: App) -> Stream[str, str]:
    return app.stream("left", value=str)


def right(app: App) -> Stream[str, str]:
    return app.stream("right", value=str)


def left_table(app: App, **options: Any) -> Table[str, str]:
    return app.table("left", value=str, **options)


def right_table(app: App, **options: Any) -> Table[str, str]:
    return app.table("right", value=str, **options)


def text(value: object) -> str:
    return "null" if value is None else str(value)


def add(aggregate: str, value: str) -> str:
    return value if len(aggregate) > 20 else aggregate + value


def join(one: str | None, other: str | None) -> str:
    return f"{text(one)}+{text(other)}"


def even(value: str) -> bool:
    return ord(value[-1]) % 2 == 0


def foreign(value: str) -> str | None:
    return None if not value or value[-1] == "9" else f"k{(ord(value[-1]) - 48) % 6}"


def prefix(value: str | None) -> str | None:
    return None if value is None else value[:2]


def to_windowed(table: Table[Any, Any], value: Any, size: int) -> None:
    table.to_stream().to("out", key=WindowedSerde(str, size, is_session=False), value=value)


def to_session(table: Table[Any, Any], value: Any) -> None:
    table.to_stream().to("out", key=WindowedSerde(str, 0, is_session=True), value=value)


# Without state


@topology
def filter(app: App) -> None:  # noqa: A001 - the name of the operator
    left(app).filter(lambda v: v is not None and even(v)).to("out")


@topology
def filter_not(app: App) -> None:
    left(app).filter_not(lambda v: v is None or even(v)).to("out")


@topology
def map(app: App) -> None:  # noqa: A001 - the name of the operator
    left(app).map(lambda k, v: (f"{text(v)}!", f"{text(k)}?"), key=str, value=str).to("out")


@topology
def map_values(app: App) -> None:
    left(app).map_values(lambda v: f"{text(v)}!", value=str).to("out")


@topology
def map_values_with_key(app: App) -> None:
    left(app).map_values(lambda k, v: f"{text(k)}/{text(v)}", value=str).to("out")


@topology
def flat_map(app: App) -> None:
    left(app).flat_map(lambda k, v: [(f"{text(k)}1", v), (f"{text(k)}2", v)], key=str, value=str).to("out")


@topology
def flat_map_values(app: App) -> None:
    left(app).flat_map_values(lambda v: [] if v is None else [v, v + v], value=str).to("out")


@topology
def select_key(app: App) -> None:
    left(app).select_key(prefix, key=str).to("out")


@topology
def merge(app: App) -> None:
    left(app).map_values(lambda v: f"l{text(v)}", value=str).merge(right(app)).to("out", key=str, value=str)


@topology
def split(app: App) -> None:
    nulls, evens, rest = left(app).split(lambda v: v is None, even, default=True, name="s-")
    nulls.to("out")
    evens.to("out2")
    rest.to("out3")


@topology
def split_without_default(app: App) -> None:
    nulls, evens = left(app).split(lambda v: v is None, even)
    nulls.to("out")
    evens.to("out2")


@topology
def to_by_function(app: App) -> None:
    left(app).to(lambda v: "out" if v is None or even(v) else "out2")


@topology
def repartition(app: App) -> None:
    left(app).select_key(prefix, key=str).repartition(name="again").to("out")


@topology
def repartition_generated(app: App) -> None:
    left(app).repartition().to("out")


@topology
def two_children(app: App) -> None:
    stream = left(app)
    stream.map_values(lambda v: f"{text(v)}1", value=str).to("out")
    stream.filter(lambda v: v is not None).map_values(lambda v: f"{v}2", value=str).to("out")
    stream.peek(lambda v: None).to("out2")


# Tables


@topology
def table(app: App) -> None:
    left_table(app).to_stream().to("out")


@topology
def table_store(app: App) -> None:
    left_table(app, store="rows").to_stream().to("out")


@topology
def table_filter(app: App) -> None:
    left_table(app).filter(even).to_stream().to("out")


@topology
def table_filter_of_store(app: App) -> None:
    left_table(app, store="rows").filter(even).to_stream().to("out")


@topology
def table_filter_store(app: App) -> None:
    left_table(app).filter(even, store="even").to_stream().to("out")


@topology
def table_filter_not(app: App) -> None:
    left_table(app, store="rows").filter_not(even, name="odd").to_stream().to("out")


@topology
def table_map_values(app: App) -> None:
    left_table(app).map_values(lambda v: f"{v}!", value=str).to_stream().to("out")


@topology
def table_map_values_store(app: App) -> None:
    mapped = left_table(app).map_values(lambda k, v: None if even(v) else k + v, value=str, store="mapped")
    mapped.to_stream().to("out", value=str)


@topology
def table_chain(app: App) -> None:
    (
        left_table(app)
        .map_values(lambda v: f"{v}!", value=str)
        .filter(lambda v: len(v) % 2 == 0)
        .map_values(lambda v: f"{v}?", value=str, store="chain")
        .filter(lambda v: len(v) > 4)
        .to_stream()
        .to("out")
    )


@topology
def to_table(app: App) -> None:
    left(app).to_table().to_stream().to("out")


@topology
def to_table_store(app: App) -> None:
    left(app).to_table(store="rows").filter(even).to_stream().to("out")


@topology
def to_table_repartition(app: App) -> None:
    left(app).select_key(prefix, key=str).to_table(name="tab").to_stream().to("out")


@topology
def table_group_count(app: App) -> None:
    left_table(app).group_by(lambda v: (foreign(v), v), key=str, value=str).count().to_stream().to("out", value=LONG)


@topology
def table_group_reduce(app: App) -> None:
    grouped = left_table(app).group_by(lambda v: (foreign(v), v), key=str, value=str)
    grouped.reduce(add, lambda a, v: f"{a}-{v}", store="sum").to_stream().to("out")


@topology
def table_group_aggregate(app: App) -> None:
    grouped = left_table(app).group_by(lambda v: (foreign(v), v), key=str, value=str)
    subtract = lambda a, v: None if len(a) > 12 else f"{a}-"  # noqa: E731
    grouped.aggregate(str, add, subtract, value=str, name="agg").to_stream().to("out")


@topology
def table_group_of_filter(app: App) -> None:
    rows = left_table(app).filter(even).map_values(lambda v: f"{v}0", value=str)
    grouped = rows.group_by(lambda v: (v[:2], v), key=str, value=str, name="groups")
    grouped.count(store="counted").to_stream().to("out", value=LONG)


# Aggregations


@topology
def count(app: App) -> None:
    left(app).group_by_key().count().to_stream().to("out", value=LONG)


@topology
def count_store(app: App) -> None:
    left(app).group_by_key().count(store="counts").to_stream().to("out", value=LONG)


@topology
def count_by(app: App) -> None:
    left(app).group_by(prefix, key=str).count(name="counting").to_stream().to("out", value=LONG)


@topology
def reduce(app: App) -> None:
    left(app).group_by_key().reduce(add).to_stream().to("out")


@topology
def aggregate(app: App) -> None:
    left(app).group_by_key().aggregate(str, add, value=str).to_stream().to("out")


@topology
def aggregate_to_null(app: App) -> None:
    shorten: Any = lambda a, v: None if len(a) > 12 else a + v  # noqa: E731
    left(app).group_by_key().aggregate(lambda: "x", shorten, value=str).to_stream().to("out")


@topology
def aggregate_then_group(app: App) -> None:
    first = left(app).group_by_key().aggregate(str, add, value=str)
    grouped = first.group_by(lambda v: (foreign(v), v), key=str, value=str)
    grouped.aggregate(str, add, lambda a, v: f"{a}-", value=str).to_stream().to("out")


@topology
def two_aggregations_of_one_group(app: App) -> None:
    grouped = left(app).group_by(prefix, key=str, name="by")
    grouped.count().to_stream().to("out", value=LONG)
    grouped.reduce(add).to_stream().to("out2")


@topology
def cogroup(app: App) -> None:
    groups = cogrouped(app)
    third = app.stream("third", value=str).group_by(lambda v: None if v is None else "k1", key=str)
    groups.cogroup(third, lambda a, v: add(a, "t")).aggregate(str, value=str).to_stream().to("out")


def cogrouped(app: App) -> Any:
    groups = left(app).group_by_key().cogroup(lambda a, v: add(a, f"l{text(v)}"))
    return groups.cogroup(right(app).group_by_key(), lambda a, v: add(a, f"r{text(v)}"))


# Windows


def add_text(aggregate: str, value: str | None) -> str:
    return add(aggregate, text(value))


@topology
def tumbling_count(app: App) -> None:
    to_windowed(left(app).group_by_key().window(tumbling("100ms", grace="30ms")).count(), LONG, 100)


@topology
def tumbling_count_without_grace(app: App) -> None:
    to_windowed(left(app).group_by_key().window(tumbling("100ms")).count(store="counts"), LONG, 100)


@topology
def hopping_count(app: App) -> None:
    to_windowed(left(app).group_by_key().window(hopping("100ms", "40ms", grace="30ms")).count(), LONG, 100)


@topology
def hopping_reduce(app: App) -> None:
    grouped = left(app).filter(lambda v: v is not None).group_by_key()
    to_windowed(grouped.window(hopping("90ms", "30ms", grace="20ms")).reduce(add), str, 90)


@topology
def tumbling_aggregate(app: App) -> None:
    windows = left(app).group_by_key().window(tumbling("50ms", grace="100ms"))
    to_windowed(windows.aggregate(str, add_text, value=str), str, 50)


@topology
def tumbling_aggregate_to_null(app: App) -> None:
    windows = left(app).group_by_key().window(tumbling("200ms", grace="100ms"))
    shorten: Any = lambda a, v: None if len(a) > 8 else a + text(v)  # noqa: E731
    to_windowed(windows.aggregate(str, shorten, value=str), str, 200)


@topology
def sliding_count(app: App) -> None:
    to_windowed(left(app).group_by_key().window(sliding("60ms", grace="30ms")).count(), LONG, 60)


@topology
def sliding_aggregate(app: App) -> None:
    windows = left(app).group_by_key().window(sliding("40ms", grace="200ms"))
    to_windowed(windows.aggregate(str, add, value=str), str, 40)


@topology
def sliding_reduce(app: App) -> None:
    to_windowed(left(app).group_by_key().window(sliding("40ms", grace="60ms")).reduce(add), str, 40)


@topology
def session_count(app: App) -> None:
    to_session(left(app).group_by_key().window(session("25ms", grace="40ms")).count(), LONG)


@topology
def session_reduce(app: App) -> None:
    grouped = left(app).filter(lambda v: v is not None).group_by_key()
    to_session(grouped.window(session("15ms")).reduce(add), str)


@topology
def session_aggregate(app: App) -> None:
    windows = left(app).group_by_key().window(session("25ms", grace="100ms"))
    to_session(windows.aggregate(str, add_text, add, value=str), str)


@topology
def tumbling_close(app: App) -> None:
    windows = left(app).group_by_key().window(tumbling("100ms", grace="30ms"))
    to_windowed(windows.emit_on_window_close().count(store="closing", retention="365d"), LONG, 100)


@topology
def hopping_close(app: App) -> None:
    windows = left(app).group_by_key().window(hopping("100ms", "40ms", grace="30ms")).emit_on_window_close()
    to_windowed(windows.aggregate(str, add_text, value=str, retention="365d"), str, 100)


@topology
def sliding_close(app: App) -> None:
    windows = left(app).group_by_key().window(sliding("60ms", grace="30ms"))
    to_windowed(windows.emit_on_window_close().count(store="closing", retention="365d"), LONG, 60)


@topology
def session_close(app: App) -> None:
    windows = left(app).group_by_key().window(session("25ms", grace="40ms"))
    to_session(windows.emit_on_window_close().count(store="closing", retention="365d"), LONG)


@topology
def cogroup_tumbling(app: App) -> None:
    to_windowed(cogrouped(app).window(tumbling("100ms", grace="30ms")).aggregate(str, value=str), str, 100)


@topology
def cogroup_sliding(app: App) -> None:
    to_windowed(cogrouped(app).window(sliding("40ms", grace="30ms")).aggregate(str, value=str), str, 40)


@topology
def cogroup_session(app: App) -> None:
    to_session(cogrouped(app).window(session("20ms", grace="30ms")).aggregate(str, add, value=str), str)


@topology
def windowed_then_grouped(app: App) -> None:
    counts = left(app).group_by_key().window(tumbling("100ms", grace="30ms")).count()
    grouped = counts.group_by(lambda w, v: (w.key, str(v)), key=str, value=str)
    grouped.reduce(add, lambda a, v: f"{a}-{v}").to_stream().to("out")


@topology
def windowed_filter(app: App) -> None:
    counts = left(app).group_by_key().window(tumbling("100ms", grace="30ms")).count()
    to_windowed(counts.filter(lambda v: v % 2 == 0), LONG, 100)


# Suppression


@topology
def suppress_tumbling(app: App) -> None:
    counts = left(app).group_by_key().window(tumbling("100ms", grace="30ms")).count()
    to_windowed(counts.suppress("window_closes"), LONG, 100)


@topology
def suppress_hopping(app: App) -> None:
    windows = left(app).group_by_key().window(hopping("100ms", "40ms"))
    to_windowed(windows.aggregate(str, add_text, value=str).suppress("window_closes", name="held"), str, 100)


@topology
def suppress_sliding(app: App) -> None:
    counts = left(app).group_by_key().window(sliding("60ms", grace="30ms")).count()
    to_windowed(counts.suppress("window_closes"), LONG, 60)


@topology
def suppress_session(app: App) -> None:
    counts = left(app).group_by_key().window(session("25ms", grace="40ms")).count()
    to_session(counts.suppress("window_closes"), LONG)


@topology
def suppress_time_limit(app: App) -> None:
    left_table(app).suppress("50ms").to_stream().to("out")


@topology
def suppress_records(app: App) -> None:
    left_table(app).suppress("5s", max_records=3).to_stream().to("out")


@topology
def suppress_bytes(app: App) -> None:
    left_table(app).suppress("5s", max_bytes=200).to_stream().to("out")


@topology
def suppress_with_old_values(app: App) -> None:
    rows = left_table(app, store="rows").suppress("40ms")
    grouped = rows.group_by(lambda v: (foreign(v), v), key=str, value=str)
    grouped.reduce(add, lambda a, v: f"{a}-{v}").to_stream().to("out")


@topology
def suppress_then_join(app: App) -> None:
    left_table(app).suppress("40ms").outer_join(right_table(app), join, value=str).to_stream().to("out")


@topology
def suppress_limit_of_windows(app: App) -> None:
    counts = left(app).group_by_key().window(tumbling("100ms", grace="30ms")).count()
    to_windowed(counts.suppress("30ms", max_records=4, when_full="emit_early"), LONG, 100)


# Joins of tables


@topology
def table_join(app: App) -> None:
    left_table(app).join(right_table(app), join, value=str).to_stream().to("out")


@topology
def table_left_join(app: App) -> None:
    left_table(app).left_join(right_table(app), join, value=str).to_stream().to("out")


@topology
def table_outer_join(app: App) -> None:
    left_table(app).outer_join(right_table(app), join, value=str).to_stream().to("out")


@topology
def table_join_store(app: App) -> None:
    left_table(app).join(right_table(app), join, value=str, store="joined").to_stream().to("out")


@topology
def table_left_join_store(app: App) -> None:
    joined = left_table(app).left_join(right_table(app), join, value=str, store="joined", name="tj")
    joined.filter(even).to_stream().to("out")


@topology
def table_outer_join_store(app: App) -> None:
    joined = left_table(app).outer_join(right_table(app), join, value=str, store="joined")
    joined.map_values(lambda v: f"{v}!", value=str).to_stream().to("out")


@topology
def table_join_three(app: App) -> None:
    joined = left_table(app).join(right_table(app), join, value=str)
    joined.left_join(app.table("third", value=str), join, value=str).to_stream().to("out")


@topology
def table_outer_join_three(app: App) -> None:
    joined = left_table(app).outer_join(right_table(app), join, value=str)
    joined.outer_join(app.table("third", value=str), join, value=str).to_stream().to("out")


@topology
def table_join_of_views(app: App) -> None:
    evens = left_table(app).filter(even)
    evens.join(right_table(app).map_values(lambda v: f"{v}!", value=str), join, value=str).to_stream().to("out")


@topology
def table_join_then_group(app: App) -> None:
    joined = left_table(app).left_join(right_table(app), join, value=str)
    grouped = joined.group_by(lambda v: (v[:2], v), key=str, value=str)
    grouped.reduce(add, lambda a, v: f"{a}-").to_stream().to("out")


@topology
def table_join_of_counts(app: App) -> None:
    lefts = left(app).group_by_key().count()
    lefts.join(right(app).group_by_key().count(), lambda x, y: f"{x}/{y}", value=str).to_stream().to("out")


@topology
def table_outer_join_then_stream(app: App) -> None:
    joined = left_table(app).outer_join(right_table(app), join, value=str)
    joined.to_stream().filter(lambda v: v is not None).group_by_key().count().to_stream().to("out", value=LONG)
    joined.to_stream().to("out2")


@topology
def foreign_join(app: App) -> None:
    left_table(app).join(right_table(app), join, by=foreign, value=str).to_stream().to("out")


@topology
def foreign_left_join(app: App) -> None:
    left_table(app).left_join(right_table(app), join, by=foreign, value=str).to_stream().to("out")


@topology
def foreign_join_store(app: App) -> None:
    joined = left_table(app).join(right_table(app), join, by=foreign, value=str, store="joined", name="fk")
    joined.filter(even).to_stream().to("out")


@topology
def foreign_join_of_filter(app: App) -> None:
    lefts = left_table(app).filter(even).map_values(lambda v: f"{v}2", value=str)
    rights = right_table(app).map_values(lambda v: f"{v}!", value=str)
    lefts.left_join(rights, join, by=foreign, value=str).to_stream().to("out")


@topology
def foreign_join_then_group(app: App) -> None:
    joined = left_table(app).join(right_table(app), join, by=foreign, value=str)
    joined.group_by(lambda v: (v[:2], v), key=str, value=str).count().to_stream().to("out", value=LONG)


# Joins of streams


@topology
def stream_join(app: App) -> None:
    left(app).join(right(app), join, within="50ms", grace="20ms", value=str).to("out")


@topology
def stream_left_join(app: App) -> None:
    left(app).left_join(right(app), join, within="50ms", grace="20ms", value=str).to("out")


@topology
def stream_outer_join(app: App) -> None:
    left(app).outer_join(right(app), join, within="50ms", grace="20ms", value=str).to("out")


@topology
def stream_join_before(app: App) -> None:
    left(app).join(right(app), join, within="50ms", after="0ms", grace="20ms", value=str).to("out")


@topology
def stream_left_join_after(app: App) -> None:
    left(app).left_join(right(app), join, within="20ms", after="80ms", value=str).to("out")


@topology
def stream_outer_join_before(app: App) -> None:
    lefts = left(app)
    joined = lefts.outer_join(
        right(app), join, within="10ms", before="60ms", grace="5ms", value=str, name="soj", store="sojs"
    )
    joined.to("out")


@topology
def stream_join_with_key(app: App) -> None:
    left(app).join(right(app), lambda k, x, y: k + x + y, within="20ms", grace="500ms", value=str).to("out")


@topology
def stream_join_repartition(app: App) -> None:
    lefts = left(app).select_key(lambda v: None if v is None else f"k{v[1]}", key=str)
    rights = right(app).map(lambda k, v: (k, v), key=str, value=str)
    lefts.join(rights, join, within="30ms", grace="20ms", value=str).to("out")


@topology
def stream_left_join_repartition(app: App) -> None:
    lefts = left(app).select_key(lambda k, v: None if v is None or even(v) else k, key=str)
    lefts.left_join(right(app), join, within="30ms", grace="20ms", value=str, name="again").to("out")


@topology
def stream_join_then_count(app: App) -> None:
    joined = left(app).join(right(app), join, within="30ms", grace="20ms", value=str)
    joined.group_by_key().count().to_stream().to("out", value=LONG)


@topology
def stream_self_join(app: App) -> None:
    stream = left(app)
    other = stream.map_values(lambda v: f"{text(v)}!", value=str)
    stream.join(other, join, within="20ms", grace="20ms", value=str).to("out")


@topology
def stream_table_join(app: App) -> None:
    stream = left(app)
    stream.join(right_table(app), join, value=str).to("out")


@topology
def stream_table_left_join(app: App) -> None:
    stream = left(app)
    stream.left_join(right_table(app), join, value=str).to("out")


@topology
def stream_table_join_with_key(app: App) -> None:
    stream = left(app)
    joined = stream.left_join(right_table(app).filter(even), lambda k, x, y: text(k) + text(x) + text(y), value=str)
    joined.to("out")


@topology
def stream_table_join_repartition(app: App) -> None:
    stream = left(app).select_key(lambda v: None if v is None else f"k{v[1]}", key=str)
    stream.join(right_table(app), join, value=str).to("out")


@topology
def stream_table_left_join_null_keys(app: App) -> None:
    stream = left(app).select_key(lambda k, v: None if v is None or even(v) else k, key=str)
    stream.left_join(right_table(app), join, value=str, name="stj").to("out")


@topology
def stream_table_join_of_count(app: App) -> None:
    stream = left(app)
    stream.join(right(app).group_by_key().count(), lambda x, y: f"{x}{y}", value=str).to("out")


@topology
def stream_global_join(app: App) -> None:
    stream = left(app)
    rows = app.global_table("right", value=str)
    stream.join(rows, join, by=lambda v: None if v is None else foreign(v), value=str).to("out")


@topology
def stream_global_left_join(app: App) -> None:
    stream = left(app)
    rows = app.global_table("right", value=str, store="all")
    joined = stream.left_join(
        rows,
        lambda k, x, y: text(k) + text(x) + text(y),
        by=lambda v: None if v is None else foreign(v),
        value=str,
    )
    joined.to("out")


# Versioned tables


@topology
def versioned_table(app: App) -> None:
    left_table(app, store="versions", versioned="150ms").to_stream().to("out")


@topology
def versioned_filter(app: App) -> None:
    left_table(app, store="versions", versioned="150ms").filter(even).to_stream().to("out")


@topology
def versioned_table_join(app: App) -> None:
    rows = left_table(app, store="versions", versioned="150ms")
    rows.join(right_table(app), join, value=str).to_stream().to("out")


@topology
def versioned_table_outer_join(app: App) -> None:
    rows = left_table(app, store="lv", versioned="150ms")
    rows.outer_join(right_table(app, store="rv", versioned="100ms"), join, value=str).to_stream().to("out")


@topology
def versioned_group(app: App) -> None:
    rows = left_table(app, store="versions", versioned="150ms")
    grouped = rows.group_by(lambda v: (foreign(v), v), key=str, value=str)
    grouped.reduce(add, lambda a, v: f"{a}-{v}").to_stream().to("out")


@topology
def versioned_stream_join(app: App) -> None:
    stream = left(app)
    stream.join(right_table(app, store="versions", versioned="100ms"), join, value=str).to("out")


@topology
def versioned_stream_left_join_waits(app: App) -> None:
    stream = left(app).filter(lambda k, v: k is not None)
    rows = right_table(app, store="versions", versioned="100ms")
    stream.left_join(rows, join, grace="40ms", value=str).to("out")


@topology
def versioned_foreign_join(app: App) -> None:
    rows = left_table(app, store="lv", versioned="150ms")
    rights = right_table(app, store="rv", versioned="100ms")
    rows.join(rights, join, by=foreign, value=str).to_stream().to("out")


# Processors


class Recent(Processor[str, str, str, str]):
    """Keeps the last values of each key, emits on each record and at intervals, and forgets."""

    recent: Store[str, str]
    ticks = True

    def init(self) -> None:
        self.schedule("100ms", self.flush)
        if self.ticks:
            self.schedule("1s", lambda now: self.forward(Record("tick", str(now), now)), by="wall_clock")

    def flush(self, now: int) -> None:
        for key, value in list(self.recent.items()):
            self.forward(Record(key, f"at {now} {value}", now))
            if len(value) > 8:
                del self.recent[key]

    def process(self, record: Record[str, str]) -> None:
        if record.key is None:
            return
        before = self.recent.get(record.key)
        if record.value is None:
            self.recent.pop(record.key)
        else:
            self.recent[record.key] = record.value if before is None else add(before, record.value)
        here = self.context
        self.forward(record.with_value(f"{text(before)}/{text(record.value)}/{here.stream_time}/{here.offset}"))


class Quiet(Recent):
    """The same without the wall clock, whose times would advance the one task of Kafka's test driver."""

    ticks = False


class Sessions(Processor[str, str, str, str]):
    """Keeps values in windows and in sessions, and forwards to one of two children."""

    windows: WindowStore[str, str] = store(retention="200ms", size="20ms")
    sessions: SessionStore[str, str] = store(retention="150ms")

    def process(self, record: Record[str, str]) -> None:
        if record.key is None or record.value is None:
            return
        time = record.timestamp
        self.windows.put(record.key, record.value, time // 20 * 20)
        found = "".join(f"{start}={value};" for start, value in self.windows.fetch(record.key, time - 60, time + 40))
        self.sessions.put(record.key, time, time + 5, record.value)
        for start, _, value in self.sessions.find(record.key, time - 30, time + 30):
            found += f"{start}:{value};"
        self.forward(record.with_value(found), to="even" if even(record.value) else "odd")


class Headed(FixedKeyProcessor[str, str, str]):
    """Adds a header, changes the timestamp, and sometimes forwards twice."""

    def process(self, record: Record[str, str]) -> None:
        record = record.with_headers((*record.headers, ("seen", b"yes")))
        self.forward(record.with_value(f"{text(record.value)}!").with_timestamp(record.timestamp + 1))
        if record.value is not None and even(record.value):
            self.forward(record.with_value("again"))


@topology
def process(app: App) -> None:
    left(app).process(Recent, key=str, value=str).to("out")


@topology
def process_windows(app: App) -> None:
    found = left(app).process(Sessions, key=str, value=str, name="sessions-processor")
    found.map_values(lambda v: v, value=str, name="even").to("out")
    found.map_values(lambda v: v, value=str, name="odd").to("out2")


@topology
def process_values(app: App) -> None:
    left(app).process_values(Headed, value=str).to("out")


@topology
def process_then_count(app: App) -> None:
    processed = left(app).process(Quiet, key=str, value=str)
    processed.group_by_key().count().to_stream().to("out", value=LONG)
