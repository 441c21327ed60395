"""Processors: stores with a time to live, versions, punctuators, children by name, time and chance from the task."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.streams import (
    App,
    FixedKeyProcessor,
    ProcessingFailed,
    Processor,
    Record,
    Store,
    VersionedStore,
    drive,
    store,
)
from barnabas.streams.errors import TopologyError


class Once(Processor[str, str, str, str]):
    """Forwards a value of a key once in a second."""

    seen: Store[str, str] = store(ttl="1s")

    def process(self, record: Record[str, str]) -> None:
        if record.key not in self.seen:
            self.seen[record.key] = record.value
            self.forward(record)


def app_of(processor: Any, **options: Any) -> App:
    app = App("processors")
    app.stream("in", value=str).process(processor, key=str, value=str, **options).to("out")
    return app


def test_entries_expire_behind_stream_time() -> None:
    with drive(app_of(Once)) as driver:
        for at in (0, 500, 999, 1_000, 1_500):
            driver.send("in", str(at), key="k", at=at)
        assert [output.value for output in driver.read("out")] == ["0", "1000"]


def test_expired_entries_leave_the_changelog() -> None:
    with drive(app_of(Once)) as driver:
        driver.send("in", "x", key="k", at=0)
        driver.send("in", "x", key="other", at=5_000)
        rows = [(row.key, row.value) for row in driver.changelog()]
        assert rows == [(b"k", b"x"), (b"k", None), (b"other", b"x")]


def test_a_time_to_live_survives_a_restart() -> None:
    with drive(app_of(Once)) as driver:
        driver.send("in", "x", key="k", at=0)
        driver.restart()
        driver.send("in", "y", key="k", at=999)
        driver.restart()
        driver.send("in", "z", key="k", at=1_000)
        assert [output.value for output in driver.read("out")] == ["x", "z"]


class Ticks(Processor[str, str, str, str]):
    """Forwards a record for each punctuation, and stops after three."""

    count: Store[str, int]

    def init(self) -> None:
        self.punctuator = self.schedule("1s", self.tick, by="wall_clock")

    def process(self, record: Record[str, str]) -> None:
        pass

    def tick(self, now: int) -> None:
        number = self.count.get("n", 0) + 1
        self.count["n"] = number
        self.forward(Record("tick", str(now), now))
        if number == 3:
            self.punctuator.cancel()


def test_wall_clock_punctuators_follow_the_drivers_clock() -> None:
    with drive(app_of(Ticks)) as driver:
        for _ in range(8):
            driver.advance("500ms")
            driver.restart()
        assert [output.value for output in driver.read("out")] == ["1000", "2000", "3000"]


class Late(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.schedule("1s", print)


def test_punctuators_are_scheduled_in_init_only() -> None:
    with drive(app_of(Late)) as driver, pytest.raises(ProcessingFailed, match=r"schedule\(\) must be called in init"):
        driver.send("in", "x", key="k")


class Router(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.forward(record, to=record.value)


def test_records_go_to_the_child_that_is_named() -> None:
    app = App("router")
    routed = app.stream("in", value=str).process(Router, key=str, value=str)
    routed.to("a", name="to-a")
    routed.to("b", name="to-b")
    with drive(app) as driver:
        driver.send("in", "to-b", key="k")
        assert driver.table("a") == {}
        assert driver.table("b") == {"k": "to-b"}
        with pytest.raises(ProcessingFailed, match="its children are: to-a, to-b"):
            driver.send("in", "to-c", key="k")


class Rename(FixedKeyProcessor[str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.forward(record.with_key("other"))


def test_a_fixed_key_processor_keeps_the_key() -> None:
    app = App("fixed")
    app.stream("in", value=str).process_values(Rename, value=str).to("out")
    with drive(app) as driver, pytest.raises(ProcessingFailed, match="cannot forward another key"):
        driver.send("in", "x", key="k")


class Versions(Processor[str, str, str, str]):
    versions: VersionedStore[str, str] = store(retention="1m")

    def process(self, record: Record[str, str]) -> None:
        self.versions.put(record.key, record.value, record.timestamp)
        history = ",".join(f"{value}@{start}-{end}" for value, start, end in self.versions.history(record.key, 0, 100))
        at_ten = self.versions.get(record.key, 10)
        self.forward(record.with_value(f"{at_ten} {history}"))


def test_versions_are_kept_in_order_of_time() -> None:
    with drive(app_of(Versions)) as driver:
        driver.send("in", "new", key="k", at=20)
        driver.send("in", "old", key="k", at=5)
        assert driver.read("out")[-1].value == "('old', 5) new@20-None,old@5-20"


class Dice(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        here = self.context
        rolled = f"{here.random.random()} {here.time} {here.topic}-{here.partition}@{here.offset}"
        self.forward(record.with_value(rolled))


def test_chance_and_time_are_the_same_when_a_batch_is_repeated() -> None:
    def rolled() -> list[Any]:
        with drive(app_of(Dice), start=5) as driver:
            driver.send("in", "a", key="k")
            driver.send("in", "b", key="k")
            return driver.read("out")

    first, second = rolled(), rolled()
    assert first == second
    assert first[0].value != first[1].value
    assert first[1].value.endswith(" 5 in-0@1")


class Forgetful(Processor[str, str, str, str]):
    sessions: VersionedStore[str, str]


def test_a_store_without_its_retention_is_refused() -> None:
    with pytest.raises(TopologyError, match=r"Forgetful\.sessions needs a retention"):
        app_of(Forgetful)


def test_a_store_that_is_missing_is_named() -> None:
    with pytest.raises(TopologyError, match="needs the store nope, which is not part of the topology"):
        app_of(Once, stores=["nope"]).topology()
