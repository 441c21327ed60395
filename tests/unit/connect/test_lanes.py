"""A shared lane promises only what it has fetched; one connector that fails or hangs holds up no other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from barnabas.connect.catalog import Catalog, PluginSettings, load, plugin_of
from barnabas.connect.driver import prepared as prepared_module
from barnabas.connect.driver.checkpoints import wanted_files
from barnabas.connect.driver.feed import Reader
from barnabas.connect.driver.lanes import SharedLane
from barnabas.connect.driver.prepared import Prepared, Spec, seconds_of
from barnabas.connect.driver.rows import outgoings, unpacked
from barnabas.connect.driver.topics import new_topic
from barnabas.connect.plugins import Config, Cursor, Limit, Offset, Part, Record, Source, connector, source

hanging = threading.Event()


class Keys(Config):
    topic: str
    count: int = 3


@connector("numbers")
class Numbers(Source[Keys]):
    Config = Keys
    every = "0.01 s"

    def latest(self, since: Offset, limit: Limit) -> Offset:
        return {"n": min(self.config.count, since.get("n", 0) + 2)}

    def read(self, part: Part) -> Iterator[Record]:
        for number in range(part.since.get("n", 0), part.until["n"]):
            yield Record(self.config.topic, number)


@source("failing")
def failing(config: Keys, cursor: int = 0) -> Iterator[Record | Cursor]:
    yield Record(config.topic, 1)
    raise ValueError("boom")


@source("hanging")
def hangs(config: Keys, cursor: int = 0) -> Iterator[Record | Cursor]:
    hanging.wait()
    yield Cursor(1)


calls = iter(range(1000))


@source("unlike", every="0.01 s", replayable=False)
def unlike(config: Keys, cursor: int = 0) -> Iterator[Record | Cursor]:
    if cursor == 0:
        yield Record(config.topic, f"call {next(calls)}")
        yield Cursor(1)


class Rows:
    """Keeps rows in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[dict[str, Any], bytes]] = {}

    def keep_rows(self, key: str, about: Mapping[str, Any], data: bytes) -> None:
        self.kept[key] = (dict(about), data)

    def rows(self, key: str, about: Mapping[str, Any]) -> bytes | None:
        found = self.kept.get(key)
        return found[1] if found is not None and found[0] == about else None


class Lane:
    """A lane with its commits and failures."""

    def __init__(self, rows: Rows | None = None) -> None:
        self.commits: list[tuple[str, Offset]] = []
        self.failures: dict[str, BaseException] = {}
        self.rows = rows or Rows()
        self.lane = SharedLane(lambda *each: self.commits.append(each), lambda *_: None, self.rows)

    def add(self, name: str, kind: str, base: Offset | None = None, generation: int = 0) -> None:
        config = {"name": name, "connector.class": kind, "topic": "t"}
        config |= {"value.converter": "json", "value.converter.schemas.enable": "false"}
        spec = Spec(name, generation, config, frozenset(), PluginSettings(), {})
        reader = Reader(Prepared(spec))
        start = base if base is not None else reader.start()
        self.lane.add(name, reader, start, lambda error: self.failures.update({name: error}))

    def next(self, start: dict[str, Any], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            end = self.lane.latest(start)
            if end != start:
                start = end if not wanted(end) else start
            if wanted(end):
                return end
            time.sleep(0.005)
        raise AssertionError(f"nothing new after {start}")

    def values(self, start: dict[str, Any], end: dict[str, Any]) -> list[bytes | None]:
        return [
            row.value for data in self.lane.plan(start, end) for batch in unpacked(data) for row in outgoings(batch)
        ]


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    catalog: Catalog = load(PluginSettings())
    for cls in (Numbers, failing, hangs, unlike):
        catalog.add(plugin_of(cls, "1"))
    monkeypatch.setattr(prepared_module, "catalog_of", lambda _: catalog)
    hanging.clear()
    yield
    hanging.set()


def at(lane_offset: dict[str, Any], name: str) -> Any:
    return lane_offset[name]["o"]


def test_batches_follow_each_other_and_are_committed() -> None:
    lane = Lane()
    lane.add("a", "numbers")
    zero = lane.lane.latest({})
    assert zero == {"a": {"g": 0, "o": {}}}
    one = lane.next(zero, lambda end: at(end, "a") == {"n": 2})
    assert lane.values(zero, one) == [b"0", b"1"]
    two = lane.next(one, lambda end: at(end, "a") == {"n": 3})
    assert lane.values(one, two) == [b"2"]
    assert lane.lane.latest(two) == two
    assert lane.commits == [("a", {}), ("a", {"n": 2}), ("a", {"n": 3})]


def test_a_connector_that_fails_or_hangs_holds_up_no_other() -> None:
    lane = Lane()
    for name, kind in (("bad", "failing"), ("stuck", "hanging"), ("good", "numbers")):
        lane.add(name, kind)
    zero = lane.lane.latest({})
    one = lane.next(zero, lambda end: at(end, "good") == {"n": 2})
    assert lane.values(zero, one) == [b"0", b"1"]
    assert (at(one, "bad"), at(one, "stuck")) == ({"cursor": None}, {"cursor": None})
    assert "boom" in str(lane.failures["bad"])


def test_a_batch_that_is_repeated_after_a_crash_is_the_same() -> None:
    lane = Lane()
    lane.add("a", "numbers")
    zero = lane.lane.latest({})
    one = lane.next(zero, lambda end: at(end, "a") == {"n": 2})
    first = lane.values(zero, one)
    again = Lane()
    again.add("a", "numbers")
    assert again.values(zero, one) == first
    two = again.next(one, lambda end: at(end, "a") == {"n": 3})
    assert again.values(one, two) == [b"2"]


def test_a_source_that_cannot_be_asked_twice_is_repeated_from_what_was_kept() -> None:
    lane = Lane()
    lane.add("a", "unlike")
    zero = lane.lane.latest({})
    one = lane.next(zero, lambda end: at(end, "a") == {"cursor": 1})
    first = lane.values(zero, one)
    again = Lane(lane.rows)
    again.add("a", "unlike")
    assert again.values(zero, one) == first


def test_a_connector_leaves_when_its_batch_is_committed() -> None:
    lane = Lane()
    lane.add("a", "numbers")
    lane.add("b", "numbers")
    zero = lane.lane.latest({})
    one = lane.next(zero, lambda end: at(end, "a") == {"n": 2})
    left = lane.lane.remove("a")
    assert not left.is_set()
    assert lane.values(zero, one)[:2] == [b"0", b"1"]
    two = lane.lane.latest(one)
    assert left.is_set()
    assert "a" not in two
    assert ("a", {"n": 2}) in lane.commits


def test_a_new_generation_starts_where_it_is_told_to() -> None:
    lane = Lane()
    lane.add("a", "numbers", base={"n": 1}, generation=1)
    end = lane.lane.latest({"a": {"g": 0, "o": {"n": 3}}})
    assert end == {"a": {"g": 1, "o": {"n": 1}}}
    assert lane.values({"a": {"g": 0, "o": {"n": 3}}}, end) == []


def test_a_paused_connector_does_not_advance() -> None:
    lane = Lane()
    lane.add("a", "numbers")
    lane.lane.pause("a", is_paused=True)
    zero = lane.lane.latest({})
    time.sleep(0.05)
    assert lane.lane.latest(zero) == zero
    lane.lane.pause("a", is_paused=False)
    assert at(lane.next(zero, lambda end: at(end, "a") != {}), "a") == {"n": 2}


def test_a_checkpoint_is_its_newest_files() -> None:
    paths = ["metadata", "offsets/9", "offsets/10", "offsets/11", "commits/9", "commits/10", "offsets/.11.crc", "x"]
    assert wanted_files(paths) == ["metadata", "offsets/10", "offsets/11", "commits/9", "commits/10"]
    assert wanted_files([]) == []


@pytest.mark.parametrize(("text", "seconds"), [("10 s", 10), ("500 ms", 0.5), ("1min", 60), ("2 h", 7200)])
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_topics_are_created_as_the_configuration_says() -> None:
    given = {
        "topic.creation.default.partitions": "3",
        "topic.creation.logs.include": "log-.*, audit",
        "topic.creation.logs.exclude": "log-x",
        "topic.creation.logs.partitions": "1",
        "topic.creation.logs.replication.factor": "2",
        "topic.creation.logs.cleanup.policy": "compact",
    }
    logs = new_topic("log-a", ("logs",), given)
    assert logs is not None
    assert (logs.partition_count, logs.replication_factor, logs.configs) == (1, 2, {"cleanup.policy": "compact"})
    other = new_topic("log-x", ("logs",), given)
    assert other is not None
    assert other.partition_count == 3
    assert new_topic("a", (), {}) is None
