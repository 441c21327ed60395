"""Records that fail are retried, skipped, written to the dead-letter topic, or fail the connector."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.connect.catalog import Plugin, PluginSettings, load
from barnabas.connect.chain import Chain
from barnabas.connect.connector_config import Parts, StepConfig
from barnabas.connect.definitions import SinkConfig
from barnabas.connect.errors import ConnectError, DataError, RetriableError, Stage
from barnabas.connect.plugins import Sink
from barnabas.connect.tolerance import ErrorHandler, Raw, put_by_halves

RAW = Raw("orders", 2, 7, 1000, b"k", b"not json", (("h", b"1"),))


def handler(**config: str) -> ErrorHandler:
    given = {"name": "a", "connector.class": "x", "topics": "orders"}
    given |= {key.replace("_", "."): value for key, value in config.items()}
    return ErrorHandler("a", 3, SinkConfig.read(given), pause=lambda _: None)


def test_a_failure_fails_the_connector_by_default() -> None:
    errors = handler()
    failure = errors.run(Stage.VALUE_CONVERTER, "json", lambda: 1 / 0)
    with pytest.raises(ConnectError, match=r"VALUE_CONVERTER of json failed at orders-2 offset 7: ZeroDivisionError"):
        errors.failed(failure, RAW)  # type: ignore[arg-type]


def test_a_dead_letter_has_the_raw_record_and_kafkas_headers() -> None:
    errors = handler(
        errors_tolerance="all",
        errors_deadletterqueue_topic_name="dead",
        errors_deadletterqueue_context_headers_enable="true",
    )
    failure = errors.run(Stage.VALUE_CONVERTER, "json", lambda: 1 / 0)
    errors.failed(failure, RAW)  # type: ignore[arg-type]
    (letter,) = errors.dead_letters
    assert (letter.key, letter.value) == (b"k", b"not json")
    headers = dict(letter.headers)
    assert headers["h"] == b"1"
    prefix = "__connect.errors."
    assert {name.removeprefix(prefix): value for name, value in headers.items() if name.startswith(prefix)} == {
        "topic": b"orders",
        "partition": b"2",
        "offset": b"7",
        "connector.name": b"a",
        "task.id": b"3",
        "stage": b"VALUE_CONVERTER",
        "class.name": b"json",
        "exception.class.name": b"builtins.ZeroDivisionError",
        "exception.message": b"division by zero",
        "exception.stacktrace": headers[prefix + "exception.stacktrace"],
    }
    assert b"ZeroDivisionError" in (headers[prefix + "exception.stacktrace"] or b"")


def test_retriable_errors_are_retried_for_the_time_that_is_given() -> None:
    waits: list[float] = []
    errors = handler(errors_retry_timeout="1000")
    errors.pause = waits.append
    attempts = iter([RetriableError("busy"), RetriableError("busy"), None])

    def attempt() -> str:
        error = next(attempts)
        if error is not None:
            raise error
        return "done"

    assert errors.run(Stage.TASK_PUT, "sink", attempt) == "done"
    assert waits == [0.3, 0.6]


def test_a_retriable_error_is_never_a_records_fault() -> None:
    errors = handler(errors_tolerance="all")

    def busy() -> None:
        raise RetriableError("busy")

    with pytest.raises(RetriableError):
        errors.failed(errors.run(Stage.TASK_PUT, "sink", busy), RAW)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [set(), {0}, {6}, {2, 3}, set(range(7))])
def test_halving_finds_exactly_the_bad_records(bad: set[int]) -> None:
    taken: list[int] = []
    failed: list[int] = []

    def put(items: Sequence[int]) -> None:
        if bad & set(items):
            raise DataError("one of them is bad")
        taken.extend(items)

    put_by_halves(put, list(range(7)), lambda item, _: failed.append(item))
    assert (taken, failed) == ([item for item in range(7) if item not in bad], sorted(bad))


def test_halving_stops_at_a_retriable_error() -> None:
    def put(_: Sequence[int]) -> None:
        raise RetriableError("connection lost")

    with pytest.raises(RetriableError):
        put_by_halves(put, [1, 2], lambda *_: None)


def test_a_chain_converts_transforms_and_tolerates() -> None:
    catalog = load(PluginSettings())
    json_plugin = catalog.find("json", ("converter",))
    plain = StepConfig("value.converter.", json_plugin, {"schemas.enable": "false"})
    cast = StepConfig("transforms.c.", catalog.find("Cast$Value", ("transformation",)), {"spec": "n:int32"})
    parts = Parts(Plugin("x", "sink", Sink, "1"))
    parts.common = {"name": "a", "connector.class": "x", "topics": "orders"}
    parts.converters = {
        "key.converter": StepConfig("key.converter.", catalog.find("bytes", ("converter",)), {}),
        "value.converter": plain,
        "header.converter": StepConfig("header.converter.", catalog.find("simple", ("converter",)), {}),
    }
    parts.transforms = [cast]
    chain = Chain(parts)
    errors = handler(errors_tolerance="all")
    record = chain.from_bytes(RAW._replace(value=b'{"n":"5"}'), errors)
    assert record is not None
    made = chain.transform(record, errors, RAW)
    assert made is not None
    assert (made.key, made.value, made.headers[0].value) == (b"k", {"n": 5}, 1)
    assert chain.from_bytes(RAW, errors) is None
    bad = chain.from_bytes(RAW._replace(value=b'{"n":"x"}'), errors)
    assert bad is not None
    assert chain.transform(bad, errors, RAW) is None
    assert errors.skipped == 2
