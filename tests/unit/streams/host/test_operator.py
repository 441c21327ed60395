"""The operator under repeated batches, moved tasks and lost workers, in a Spark that is simulated in memory."""

from __future__ import annotations

import copy
import random
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql import Row as SparkRow

from barnabas.streams import App, DeadLetter, drive, tumbling
from barnabas.streams.host import cache, operator, state
from barnabas.streams.host.blobs import OUTPUT, output_batches
from barnabas.streams.host.code import AppCode
from barnabas.streams.host.operator import TaskOperator
from barnabas.streams.host.packing import Packing
from barnabas.streams.host.plan import make_plan
from barnabas.streams.host.routing import Packed
from barnabas.streams.host.routing import routed as route
from barnabas.streams.host.state_topic import Restored, StateTopic, assemble
from barnabas.streams.positions import decode_position

counting = App("counting")
(
    counting.stream("lines", value=str)
    .flat_map_values(lambda line: line.split())
    .group_by(lambda word: word)
    .count(store="counts")
    .to_stream()
    .to("counts")
)

windows = App("windows")
left, right = windows.table("left", value=str), windows.table("right", value=str)
left.outer_join(right, lambda one, other: f"{one}+{other}", store="joined").to_stream().to("joined")
(
    windows.stream("clicks", value=str)
    .group_by_key()
    .window(tumbling("1s", grace="500ms"))
    .count()
    .suppress(until="window_closes")
    .to_stream()
    .map(lambda window, count: (window.key, f"{window.start} {count}"), key=str, value=str)
    .to("closed")
)

routed = App("routed", on_error=DeadLetter("dead"))
both = routed.stream("left", value=str).merge(routed.stream("right", value=str))
both.filter(lambda value: value is not None and "ant" in value).map_values(str.upper, value=str).to("upper")
both.map_values(lambda value: len(value), value=int).to("sizes")  # a null value is a dead letter
both.group_by(lambda value: value[:3], key=str, name="first").aggregate(
    lambda: "", lambda found, value: f"{found} {value}", value=str
).to_stream().to("found")

copied = App("copied", on_error=DeadLetter("dead"))
copied.stream("left", value=str).map_values(lambda value: value.split()[0], value=str).to("first")

PARTITIONS = {"lines": 3, "left": 2, "right": 2, "clicks": 2}
WORDS = ("ant", "bee", "cow", "dog")
Record = tuple[str, int, str, str | None, int]  # topic, partition, key, value, timestamp


class Variables(dict[Any, Any]):
    """Both state variables of a task."""

    def get(self, *_: Any) -> Any:
        return dict.get(self, "head")

    def update(self, newValue: Any) -> None:  # type: ignore[override]  # noqa: N803
        self["head"] = newValue

    def getValue(self, key: tuple[int]) -> Any:
        found = dict.get(self, key[0])
        return None if found is None else (found,)

    def updateValue(self, key: tuple[int], value: Any) -> None:
        self[key[0]] = value[0]

    def removeKey(self, key: tuple[int]) -> None:
        self.pop(key[0], None)

    def getValueState(self, *_: Any) -> Any:
        return self

    def getMapState(self, *_: Any) -> Any:
        return self


class StateRecords(StateTopic):
    """A state topic in memory; a restoring one has the records that were there when it was made."""

    def __init__(self, records: list[tuple[bytes, bytes | None]], *, is_restoring: bool = False) -> None:
        super().__init__("state", 2, {}, {} if is_restoring else None)
        object.__setattr__(self, "records", records)
        object.__setattr__(self, "restorable", list(records))

    records: list[tuple[bytes, bytes | None]]
    restorable: list[tuple[bytes, bytes | None]]

    def restore(self, task: int, place: str) -> Restored | None:
        return assemble(self.restorable, place)


class Spark:
    """Runs batches of an application; ``workers`` caches stand for so many worker processes."""

    def __init__(self, app: App, seed: int, workers: int = 1, failures: float = 0.0) -> None:
        topology = app.topology()
        read = {topic: PARTITIONS[topic] for topic in topology.source_topics}
        self.plan = make_plan(topology, read, partitions_max=2)
        self.code = AppCode.of(app)
        self.states: dict[tuple[int, int], Variables] = {}
        self.offsets: dict[tuple[str, int], int] = {}
        self.random = random.Random(seed)
        self.failures = failures
        self.caches: list[Any] = [OrderedDict() for _ in range(workers)]
        self.batch = 0
        self.state_topic: StateRecords | None = None

    def lose_checkpoint(self, topic: StateRecords) -> None:
        """Forget all state but that of the state topic."""
        self.states, self.caches = {}, [OrderedDict()]
        self.state_topic = StateRecords(topic.records, is_restoring=True)

    def run(self, records: list[Record], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
        """One batch; it is repeated, from the state before it, as long as attempts fail."""
        self.batch += 1
        monkeypatch.setattr(operator, "_query_and_batch", lambda: ("query", str(self.batch)))
        rows = list(self._packed(records))
        before = copy.deepcopy(self.states)
        while True:
            try:
                return self._attempt(rows, monkeypatch)
            except ConnectionError:
                self.states = copy.deepcopy(before)

    def _attempt(self, rows: list[SparkRow], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
        for stage in range(self.plan.stage_count):
            groups: dict[int, list[SparkRow]] = {}
            self.random.shuffle(rows)  # a shuffle of Spark promises no order
            for row in rows:
                groups.setdefault(row.task, []).append(row)
            rows = []
            for label, given in groups.items():
                monkeypatch.setattr(cache, "_kept", self.random.choice(self.caches))
                hosted = TaskOperator(self.code, self.plan, stage, state.STATE_BYTES_MAX, self.state_topic)
                hosted.init(self.states.setdefault((stage, label), Variables()))  # type: ignore[arg-type]
                rows += hosted.handleInputRows((label,), iter(given), None)
                if self.random.random() < self.failures:
                    raise ConnectionError("a worker was lost")
        assert {row.kind for row in rows} <= {OUTPUT}
        blobs = [row.blob for row in sorted(rows, key=lambda row: (row.task, row.first))]
        cells = [row for batch in output_batches(blobs) for row in batch.to_pylist() if row["offsets"] is None]
        if self.state_topic is not None:
            self.state_topic.records += [(row["key"], row["value"]) for row in cells if row["topic"] == "state"]
            cells = [
                row for row in cells if row["topic"] != "state" and not row["topic"].endswith("-task-metrics-changelog")
            ]
        return [(row["topic"], row["key"], row["value"], row["timestamp"]) for row in cells]

    def _packed(self, records: list[Record]) -> Iterator[SparkRow]:
        for topic, partition, key, value, timestamp in records:
            offset = self.offsets.get((topic, partition), 0)
            self.offsets[topic, partition] = offset + 1
            columns = {
                "key": pa.array([key.encode()], pa.binary()),
                "value": pa.array([None if value is None else value.encode()], pa.binary()),
                "topic": [topic],
                "partition": pa.array([partition], pa.int32()),
                "offset": pa.array([offset], pa.int64()),
                "timestamp": pa.array([timestamp * 1000], pa.timestamp("us", tz="UTC")),
                "headers": pa.nulls(1, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
                "now": pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
            }
            for batch in Packing(self.plan, self.code)(iter([pa.RecordBatch.from_pydict(columns)])):
                yield from (SparkRow(**row) for row in batch.to_pylist())


def batches(app: App, seed: int, count: int = 25) -> list[list[Record]]:
    """Random records; keys go to partitions as a producer would send them."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        batch: list[Record] = []
        for _ in range(draw.randrange(1, 8)):
            topic = draw.choice(app.topology().source_topics)
            key = draw.choice(WORDS)
            value = None if topic in ("left", "right") and draw.random() < 0.2 else " ".join(draw.choices(WORDS, k=2))
            at = number * 300 + draw.randrange(-600, 600)
            batch.append((topic, WORDS.index(key) % PARTITIONS[topic], key, value, max(0, at)))
        found.append(batch)
    return found


@pytest.fixture
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots after a few batches instead of after a megabyte."""
    monkeypatch.setattr(state, "LOG_BYTES_MIN", 300)
    monkeypatch.setattr(state, "GROWTH_MAX", 1)
    monkeypatch.setattr(state, "DELETED_MIN", 2)


@pytest.mark.usefixtures("short_logs")
@pytest.mark.parametrize("app", [counting, windows], ids=["counting", "windows"])
@pytest.mark.parametrize("seed", range(3))
def test_lost_workers_and_moved_tasks_do_not_change_the_output(
    app: App, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet, disturbed = Spark(app, seed), Spark(app, seed + 1, workers=3, failures=0.1)
    for batch in batches(app, seed):
        assert disturbed.run(batch, monkeypatch) == quiet.run(batch, monkeypatch)
    firsts = [variables.get()[2] for variables in disturbed.states.values() if variables.get()]
    assert any(firsts), "a snapshot was taken"


@pytest.mark.usefixtures("short_logs")
def test_a_worker_that_starts_without_tasks_restores_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, forgetful = Spark(windows, 1), Spark(windows, 2)
    for batch in batches(windows, 7):
        forgetful.caches = [OrderedDict()]
        assert forgetful.run(batch, monkeypatch) == kept.run(batch, monkeypatch)


@pytest.mark.usefixtures("short_logs")
@pytest.mark.parametrize("app", [counting, windows], ids=["counting", "windows"])
@pytest.mark.parametrize("seed", range(3))
def test_lost_checkpoints_do_not_change_the_output(app: App, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet, disturbed = Spark(app, seed), Spark(app, seed + 1, failures=0.1)
    topic = disturbed.state_topic = StateRecords([])
    for number, batch in enumerate(batches(app, seed)):
        if number % 5 == 4:
            disturbed.lose_checkpoint(topic)
        assert disturbed.run(batch, monkeypatch) == quiet.run(batch, monkeypatch)
    newest = {key.split(b"/")[0]: assemble(topic.records, key.split(b"/")[0].decode()) for key, _ in topic.records}
    assert any(found and found.kept > 0 for found in newest.values()), "old chunks are deleted"


def test_a_batch_that_is_repeated_after_a_rebuild_is_not_applied_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver dies after the transaction and before Spark's checkpoint: the state topic is ahead then."""
    spark = Spark(counting, 1)
    topic = spark.state_topic = StateRecords([])
    spark.run([("lines", 0, "k", "ant ant", 0)], monkeypatch)
    spark.lose_checkpoint(topic)
    offsets, states = dict(spark.offsets), copy.deepcopy(spark.states)
    first = spark.run([("lines", 0, "k", "ant", 1)], monkeypatch)
    spark.offsets, spark.states, spark.caches = offsets, states, [OrderedDict()]
    assert spark.run([("lines", 0, "k", "ant", 1)], monkeypatch) == first
    assert (first[0][1], first[0][2]) == (b"ant", b"3")


@pytest.mark.parametrize("app", [routed, copied], ids=["routed", "copied"])
@pytest.mark.parametrize("seed", range(3))
def test_stateless_parts_run_where_records_are_read(app: App, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark(app, seed)
    assert spark.plan.is_stateless(0)
    assert spark.plan.stage_count == (1 if app is routed else 0)
    given = batches(app, seed)
    found = sorted(_comparable(each) for batch in given for each in spark.run(sorted(batch, key=_by_time), monkeypatch))
    with drive(app, partitions=2) as driver:
        for batch in given:
            for topic, partition, key, value, at in sorted(batch, key=_by_time):
                content = None if value is None else value.encode()
                driver.send_bytes(topic, key.encode(), content, at=at, partition=partition)
        expected = [
            (topic, row.key, row.value)
            for topic in ("upper", "sizes", "found", "first", "dead")
            for row in driver.read_rows(topic)
        ]
    assert found == sorted(_comparable(each) for each in expected)


def _by_time(record: Record) -> tuple[int, str, int]:
    """The order of a merge: by time, and records of one time by their topic and partition."""
    return record[4], record[0], record[1]


def _comparable(row: tuple[Any, ...]) -> tuple[str, bytes, bytes]:
    return row[0], row[1] or b"", row[2] or b""


def _kept(rows: list[Packed], given: Iterator[Packed]) -> Iterator[Packed]:
    for each in given:
        rows.append(each)
        yield each


def test_changelog_rows_have_the_position_of_all_tasks_whose_records_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark(counting, 1)
    positions = []
    for batch in ([("lines", 0, "k", "ant", 0), ("lines", 2, "k", "ant", 0)], [("lines", 2, "k", "ant", 1)]):
        rows: list[Any] = []
        monkeypatch.setattr(operator, "routed", lambda *given, rows=rows: _kept(rows, route(*given)))
        spark.run(batch, monkeypatch)
        cells = [
            row
            for cell in rows
            if cell.kind == OUTPUT
            for part in output_batches([cell.blob])
            for row in part.to_pylist()
            if row["topic"] == "counting-counts-changelog"
        ]
        positions.append(decode_position({each["key"]: each["value"] for each in cells[-1]["headers"]}["c"]))
    assert positions == [{"lines": {0: 1, 2: 1}}, {"lines": {0: 1, 2: 2}}]
