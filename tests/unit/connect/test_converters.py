"""Converters write and read what Kafka Connect's write and read."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pytest

from barnabas.connect.catalog import PluginSettings, load
from barnabas.connect.converters import Converter
from barnabas.connect.errors import DataError
from barnabas.connect.schemas import (
    BYTES,
    FLOAT32,
    INT8,
    INT64,
    STRING,
    Schema,
    array,
    date_schema,
    decimal_schema,
    infer,
    mapping,
    struct,
    time_schema,
    timestamp_schema,
)


def converter(name: str, **config: str) -> Converter:
    plugin = load(PluginSettings()).find(name, ("converter",))
    given = {key.replace("_", "."): value for key, value in config.items()}
    made: Converter = plugin.cls(plugin.cls.Config.read(given))
    return made


EVERYTHING = struct(
    {
        "price": decimal_schema(2),
        "day": date_schema(),
        "time": time_schema(optional=True),
        "at": timestamp_schema(),
        "raw": BYTES,
        "tags": array(STRING),
        "by_name": mapping(STRING, INT8),
        "by_number": mapping(INT8, STRING),
        "ratio": FLOAT32,
    },
    name="everything",
)
VALUE: dict[str, Any] = {
    "price": decimal.Decimal("1.50"),
    "day": dt.date(2026, 1, 2),
    "time": dt.time(3, 4, 5, 678_000),
    "at": dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC),
    "raw": b"\x00\xff",
    "tags": ["a", "b"],
    "by_name": {"x": 1},
    "by_number": {1: "x"},
    "ratio": 0.5,
}


def test_json_with_a_schema_is_kafkas_envelope() -> None:
    data = converter("JsonConverter").to_bytes("t", EVERYTHING, VALUE)
    assert data is not None
    found = json.loads(data)
    assert found["payload"] == {
        "price": "AJY=",
        "day": 20455,
        "time": 11_045_678,
        "at": 1_767_323_045_678,
        "raw": "AP8=",
        "tags": ["a", "b"],
        "by_name": {"x": 1},
        "by_number": [[1, "x"]],
        "ratio": 0.5,
    }
    assert found["schema"]["fields"][0] == {
        "type": "bytes",
        "optional": False,
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": "2"},
        "field": "price",
    }
    assert found["schema"]["name"] == "everything"


def test_json_with_a_schema_comes_back_as_it_was() -> None:
    json_converter = converter("json")
    data = json_converter.to_bytes("t", EVERYTHING, VALUE)
    assert json_converter.from_bytes("t", data) == (EVERYTHING, VALUE)


def test_json_without_schemas_is_the_payload_alone() -> None:
    plain = converter("json", schemas_enable="false")
    assert plain.to_bytes("t", None, {"a": 1}) == b'{"a":1}'
    assert plain.from_bytes("t", b'{"a":1}') == (None, {"a": 1})
    assert plain.to_bytes("t", None, None) is None


def test_decimals_can_be_numbers() -> None:
    numeric = converter("json", schemas_enable="false", decimal_format="NUMERIC")
    assert numeric.to_bytes("t", decimal_schema(2), decimal.Decimal("1.50")) == b"1.50"


@pytest.mark.parametrize("data", [b"{", b"\xff", b"5", b'{"schema":null}', b'{"a":1,"schema":null,"payload":1}'])
def test_json_that_is_no_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        converter("json").from_bytes("t", data)


@pytest.mark.parametrize(
    ("schema", "value"),
    [(INT8, 128), (INT8, "1"), (INT64, True), (STRING, 5), (STRING, None), (BYTES, "x"), (struct({}), [])],
)
def test_a_value_that_does_not_fit_its_schema_is_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(DataError):
        converter("json").to_bytes("t", schema, value)


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("ShortConverter", -2, b"\xff\xfe"),
        ("IntegerConverter", 1, b"\x00\x00\x00\x01"),
        ("LongConverter", 1, b"\x00" * 7 + b"\x01"),
        ("FloatConverter", 1.5, b"\x3f\xc0\x00\x00"),
        ("DoubleConverter", 1.5, b"\x3f\xf8" + b"\x00" * 6),
        ("BooleanConverter", True, b"\x01"),
        ("StringConverter", "ä", "ä".encode()),
        ("ByteArrayConverter", b"x", b"x"),
    ],
)
def test_primitive_converters(name: str, value: Any, data: bytes) -> None:
    found = converter(name)
    assert found.to_bytes("t", None, value) == data
    assert found.from_bytes("t", data).value == value
    assert found.to_bytes("t", None, None) is None
    assert found.from_bytes("t", None).value is None


@pytest.mark.parametrize(("name", "data"), [("LongConverter", b"\x01"), ("StringConverter", b"\xff")])
def test_bytes_of_another_type_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(DataError):
        converter(name).from_bytes("t", data)


@pytest.mark.parametrize(("text", "value"), [(b"5", 5), (b"text", "text"), (b"true", True), (b"[1]", [1])])
def test_headers_are_read_as_what_they_look_like(text: bytes, value: Any) -> None:
    plugin = load(PluginSettings()).find("SimpleHeaderConverter", ("header_converter", "converter"))
    assert plugin.cls(plugin.cls.Config()).from_bytes("t", text).value == value


def test_a_schema_can_be_inferred() -> None:
    assert infer({"a": 1, "b": [True], "c": None}) == struct(
        {
            "a": INT64.as_optional(),
            "b": array(infer(True), optional=True),
            "c": STRING.as_optional(),
        },
        optional=True,
    )
