"""Records that cannot be read, processed or written: the application fails, goes on, or writes a dead letter."""

from __future__ import annotations

import logging

import pytest

from barnabas.streams import App, Continue, DeadLetter, Fail, ProcessingFailed, drive


def divide(value: int) -> int:
    return 10 // value


def app_with(policy: Fail | Continue | DeadLetter) -> App:
    app = App("failing", on_error=policy)
    app.stream("in", value=int).map_values(divide, value=int, name="divide").to("out")
    return app


def test_the_default_is_to_fail_with_the_place() -> None:
    with drive(app_with(Fail())) as driver:
        driver.send("in", 1, key="k")
        with pytest.raises(
            ProcessingFailed, match="divide: processing offset 1 of in-0 failed: ZeroDivisionError"
        ) as error:
            driver.send("in", 0, key="k")
        assert (error.value.node, error.value.topic, error.value.offset) == ("divide", "in", 1)
        assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_continue_drops_the_record_and_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    with drive(app_with(Continue())) as driver, caplog.at_level(logging.WARNING):
        for value in (1, 0, 5):
            driver.send("in", value, key="k")
        assert [output.value for output in driver.read("out")] == [10, 2]
    assert "divide: processing offset 1 of in-0 failed" in caplog.text


def test_a_dead_letter_has_the_record_and_kafkas_headers(caplog: pytest.LogCaptureFixture) -> None:
    with drive(app_with(DeadLetter("dead"))) as driver, caplog.at_level(logging.WARNING):
        driver.send("in", 0, key="k", at=7, headers=[("h", b"1")])
        (row,) = driver.read_rows("dead")
        assert (row.key, row.value, row.timestamp) == (b"k", b"0", 7)
        assert "the record is written to dead" in caplog.text
        headers = dict(row.headers)
        assert headers["h"] == b"1"
        assert headers["__streams.errors.exception"] == b"builtins.ZeroDivisionError"
        assert headers["__streams.errors.topic"] == b"in"
        assert headers["__streams.errors.partition"] == b"0"
        assert headers["__streams.errors.offset"] == b"0"
        assert b"divide" in (headers["__streams.errors.stacktrace"] or b"")
        assert headers["__streams.errors.message"]


def test_bytes_that_are_not_the_type_are_dead_letters() -> None:
    with drive(app_with(DeadLetter("dead"))) as driver:
        driver.send_bytes("in", b"k", b"not a number")
        driver.send("in", 2, key="k")
        assert [row.value for row in driver.read_rows("dead")] == [b"not a number"]
        assert [output.value for output in driver.read("out")] == [5]


def test_what_cannot_be_written_is_a_dead_letter() -> None:
    app = App("failing", on_error=DeadLetter("dead"))
    app.stream("in", value=int).map_values(lambda value: object()).to("out")
    with drive(app) as driver:
        driver.send("in", 2, key="k")
        assert [row.value for row in driver.read_rows("dead")] == [b"2"]


def test_a_node_has_a_policy_of_its_own() -> None:
    app = App("failing")
    app.stream("in", value=int).map_values(divide, value=int, on_error=DeadLetter("dead")).map_values(
        lambda value: 1 // (value - 5), value=int
    ).to("out")
    with drive(app) as driver:
        driver.send("in", 0, key="k")
        assert len(driver.read_rows("dead")) == 1
        with pytest.raises(ProcessingFailed, match="KSTREAM-MAPVALUES"):
            driver.send("in", 2, key="k")


def test_a_negative_timestamp_is_an_error() -> None:
    app = App("failing")
    app.stream("in", value=int, at=lambda value: value).to("out")
    with drive(app) as driver, pytest.raises(ProcessingFailed, match="the timestamp is -1"):
        driver.send("in", -1, key="k")


def test_siblings_of_a_node_that_failed_still_get_the_record() -> None:
    app = App("failing", on_error=Continue())
    stream = app.stream("in", value=int)
    stream.map_values(divide, value=int).to("divided")
    stream.to("all")
    with drive(app) as driver:
        driver.send("in", 0, key="k")
        assert driver.table("divided") == {}
        assert driver.table("all") == {"k": 0}
