"""Each transform does what Kafka's of the same name does, with and without a schema."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.connect.catalog import Catalog, PluginSettings, load
from barnabas.connect.errors import ConfigError, DataError
from barnabas.connect.plugins import Transform
from barnabas.connect.records import Header, Record
from barnabas.connect.schemas import (
    BOOLEAN,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    STRING,
    Schema,
    Type,
    date_schema,
    struct,
    timestamp_schema,
)

ORDER = struct({"id": INT64, "total": FLOAT64, "paid": BOOLEAN, "note": STRING.as_optional()}, name="order", version=1)
VALUE = {"id": 7, "total": 2.5, "paid": True, "note": None}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load(PluginSettings())


def made(catalog: Catalog, name: str, **config: str) -> Transform[Any]:
    plugin = catalog.find(name, ("transformation",))
    given = {key.replace("_", "."): value for key, value in config.items()}
    transform: Transform[Any] = plugin.cls(plugin.cls.Config.read(given))
    return transform


def record(value: Any = None, schema: Schema | None = None, **more: Any) -> Record:
    return Record("orders", value, value_schema=schema, **more)


def after(catalog: Catalog, name: str, before: Record, **config: str) -> Record:
    result = made(catalog, name, **config).apply(before)
    assert result is not None
    return result


def test_there_are_kafkas_sixteen_transforms(catalog: Catalog) -> None:
    found = [plugin.name for plugin in catalog if plugin.kind == "transformation"]
    names = {name.rpartition(".")[2].partition("$")[0] for name in found if name.startswith("org.apache.kafka.")}
    assert names == {
        "Cast",
        "DropHeaders",
        "ExtractField",
        "Filter",
        "Flatten",
        "HeaderFrom",
        "HoistField",
        "InsertField",
        "InsertHeader",
        "MaskField",
        "RegexRouter",
        "ReplaceField",
        "SetSchemaMetadata",
        "TimestampConverter",
        "TimestampRouter",
        "ValueToKey",
    }


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        (300, "int8", 44),
        (2**40 + 5, "int32", 5),
        (1e12, "int32", 2**31 - 1),
        (-1.9, "int64", -1),
        (float("nan"), "int32", 0),
        ("12", "int16", 12),
        (True, "float64", 1.0),
        (0.1, "float32", 0.10000000149011612),
        ("TRUE", "boolean", True),
        ("yes", "boolean", False),
        (0.5, "boolean", False),
        (1e10, "string", "1.0E10"),
        (1.0, "string", "1.0"),
        (0.0001, "string", "1.0E-4"),
        (b"ab", "string", "YWI="),
        (None, "int8", None),
    ],
)
def test_cast_narrows_as_java_does(catalog: Catalog, given: Any, kind: str, expected: Any) -> None:
    assert after(catalog, "Cast$Value", record(given), spec=kind).value == expected


@pytest.mark.parametrize(("given", "kind"), [("300", "int8"), ("1.5", "int32"), ("x", "float64"), ([1], "int8")])
def test_cast_refuses_what_java_refuses(catalog: Catalog, given: Any, kind: str) -> None:
    with pytest.raises(DataError):
        made(catalog, "Cast$Value", spec=kind).apply(record(given))


def test_cast_of_fields_changes_the_schema(catalog: Catalog) -> None:
    result = after(catalog, "Cast$Value", record(VALUE, ORDER), spec="id:int32,total:string")
    assert result.value == {"id": 7, "total": "2.5", "paid": True, "note": None}
    assert result.value_schema is not None
    assert [each.schema.type for each in result.value_schema.fields] == [
        Type.INT32,
        Type.STRING,
        Type.BOOLEAN,
        Type.STRING,
    ]
    assert result.value_schema.name == "order"


@pytest.mark.parametrize("spec", ["", "id:decimal", "int8,id:int8", "a:b:int8"])
def test_cast_names_a_wrong_spec(catalog: Catalog, spec: str) -> None:
    with pytest.raises(ConfigError, match="spec"):
        made(catalog, "Cast$Value", spec=spec)


def test_extract_field_reaches_nested_fields_with_version_2(catalog: Catalog) -> None:
    value = {"a": {"b.c": 5}}
    assert after(catalog, "ExtractField$Value", record(value), field="a").value == {"b.c": 5}
    assert after(catalog, "ExtractField$Value", record(value), field="a.`b.c`", field_syntax_version="V2").value == 5
    with pytest.raises(DataError, match="nope"):
        made(catalog, "ExtractField$Value", field="nope").apply(record(VALUE, ORDER))
    taken = after(catalog, "ExtractField$Key", record(key=VALUE, key_schema=ORDER), field="id")
    assert (taken.key, taken.key_schema) == (7, INT64)


def test_flatten_joins_names_and_hands_down_optionality(catalog: Catalog) -> None:
    schema = struct({"a": struct({"b": INT32, "c": struct({"d": STRING})}, optional=True), "e": INT8})
    value = {"a": {"b": 1, "c": {"d": "x"}}, "e": 2}
    flat = after(catalog, "Flatten$Value", record(value, schema), delimiter="_")
    assert flat.value == {"a_b": 1, "a_c_d": "x", "e": 2}
    assert flat.value_schema is not None
    assert [(each.name, each.schema.optional) for each in flat.value_schema.fields] == [
        ("a_b", True),
        ("a_c_d", True),
        ("e", False),
    ]
    assert after(catalog, "Flatten$Value", record(value)).value == {"a.b": 1, "a.c.d": "x", "e": 2}


def test_headers_are_inserted_copied_moved_and_dropped(catalog: Catalog) -> None:
    inserted = after(catalog, "InsertHeader", record(), header="n", value_literal="42")
    assert inserted.headers == [Header("n", 42, INT8)]
    assert after(catalog, "DropHeaders", inserted, headers="n,x").headers == []
    copied = after(catalog, "HeaderFrom$Value", record(VALUE, ORDER), fields="id,note", headers="i,n", operation="copy")
    assert [(each.key, each.value) for each in copied.headers] == [("i", 7), ("n", None)]
    assert copied.value == VALUE
    moved = after(catalog, "HeaderFrom$Value", record(VALUE, ORDER), fields="id", headers="i", operation="move")
    assert "id" not in moved.value
    assert moved.value_schema is not None
    assert moved.value_schema.field("id") is None


def test_hoist_wraps(catalog: Catalog) -> None:
    hoisted = after(catalog, "HoistField$Value", record(5, INT32), field="n")
    assert hoisted.value == {"n": 5}
    assert hoisted.value_schema == struct({"n": INT32})


def test_insert_field_adds_what_is_known_of_the_record(catalog: Catalog) -> None:
    before = record(VALUE, ORDER, partition=3, offset=9, timestamp_ms=1_000)
    config = {
        "topic_field": "t!",
        "partition_field": "p",
        "offset_field": "o?",
        "timestamp_field": "at",
        "static_field": "s",
        "static_value": "x",
    }
    result = after(catalog, "InsertField$Value", before, **config)
    at = dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert result.value == VALUE | {"t": "orders", "p": 3, "o": 9, "at": at, "s": "x"}
    assert result.value_schema is not None
    kinds = {each.name: each.schema for each in result.value_schema.fields}
    assert not kinds["t"].optional
    assert kinds["at"] == timestamp_schema(optional=True)
    assert after(catalog, "InsertField$Value", record({}, timestamp_ms=5), timestamp_field="at").value == {"at": 5}
    with pytest.raises(ConfigError, match="no field"):
        made(catalog, "InsertField$Value")


def test_mask_field_blanks_or_replaces(catalog: Catalog) -> None:
    assert after(catalog, "MaskField$Value", record(VALUE, ORDER), fields="id,paid,note").value == {
        "id": 0,
        "total": 2.5,
        "paid": False,
        "note": None,
    }
    assert after(catalog, "MaskField$Value", record({"a": "x", "b": [1]}), fields="a,b").value == {"a": "", "b": []}
    assert after(catalog, "MaskField$Value", record({"a": "x"}), fields="a", replacement="***").value == {"a": "***"}
    with pytest.raises(DataError):
        made(catalog, "MaskField$Value", fields="a", replacement="***").apply(record({"a": 5}))


def test_replace_field_excludes_includes_and_renames(catalog: Catalog) -> None:
    result = after(catalog, "ReplaceField$Value", record(VALUE, ORDER), exclude="note", renames="id:key")
    assert result.value == {"key": 7, "total": 2.5, "paid": True}
    assert result.value_schema is not None
    assert [each.name for each in result.value_schema.fields] == ["key", "total", "paid"]
    assert after(catalog, "ReplaceField$Value", record(VALUE), include="id").value == {"id": 7}


def test_routers_choose_the_topic(catalog: Catalog) -> None:
    before = Record("db.public.orders", timestamp_ms=1_767_323_045_678)
    assert after(catalog, "RegexRouter", before, regex="db\\.(.*)\\.(.*)", replacement="$2-$1").topic == "orders-public"
    assert after(catalog, "RegexRouter", before, regex="orders", replacement="x").topic == "db.public.orders"
    assert after(catalog, "TimestampRouter", before).topic == "db.public.orders-20260102"
    with pytest.raises(DataError):
        made(catalog, "TimestampRouter").apply(Record("t"))


def test_set_schema_metadata_renames_the_schema(catalog: Catalog) -> None:
    result = after(catalog, "SetSchemaMetadata$Value", record(VALUE, ORDER), schema_name="n", schema_version="2")
    assert result.value_schema is not None
    assert (result.value_schema.name, result.value_schema.version) == ("n", 2)
    with pytest.raises(DataError):
        made(catalog, "SetSchemaMetadata$Value", schema_name="n").apply(record({}))


AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
MILLIS = 1_767_323_045_678


@pytest.mark.parametrize(
    ("given", "config", "expected"),
    [
        (MILLIS, {"target.type": "Timestamp"}, AT),
        (MILLIS * 1000 + 9, {"target.type": "Timestamp", "unix.precision": "microseconds"}, AT),
        (AT, {"target.type": "unix", "unix.precision": "seconds"}, 1_767_323_045),
        (AT, {"target.type": "Date"}, AT.date()),
        (AT, {"target.type": "Time"}, AT.time()),
        (MILLIS, {"target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"}, "2026-01-02T03:04:05.678Z"),
        (MILLIS, {"target.type": "string", "format": "EEE, d MMM yy hh:mm a"}, "Fri, 2 Jan 26 03:04 AM"),
        ("2026-01-02 03:04:05.678", {"target.type": "unix", "format": "yyyy-MM-dd HH:mm:ss.SSS"}, MILLIS),
        ("20260102", {"target.type": "Date", "format": "yyyyMMdd"}, dt.date(2026, 1, 2)),
        ("2 January 2026 +0100", {"target.type": "unix", "format": "d MMMM yyyy Z"}, 1_767_308_400_000),
        (None, {"target.type": "unix"}, None),
    ],
)
def test_timestamps_convert_each_to_each(
    catalog: Catalog, given: Any, config: Mapping[str, str], expected: Any
) -> None:
    plugin = catalog.find("TimestampConverter$Value", ("transformation",))
    assert plugin.cls(plugin.cls.Config.read(config)).apply(record(given)).value == expected


def test_a_timestamp_field_changes_its_schema(catalog: Catalog) -> None:
    schema = struct({"at": timestamp_schema(optional=True)})
    plugin = catalog.find("TimestampConverter$Value", ("transformation",))
    config = plugin.cls.Config.read({"target.type": "Date", "field": "at"})
    result = plugin.cls(config).apply(record({"at": AT}, schema))
    assert result.value == {"at": AT.date()}
    assert result.value_schema == struct({"at": date_schema(optional=True)})


def test_value_to_key_takes_fields(catalog: Catalog) -> None:
    assert after(catalog, "ValueToKey", record(VALUE), fields="id").key == {"id": 7}
    result = after(catalog, "ValueToKey", record(VALUE, ORDER), fields="id,note")
    assert result.key == {"id": 7, "note": None}
    assert result.key_schema == struct({"id": INT64, "note": STRING.as_optional()})
    with pytest.raises(DataError, match="nope"):
        made(catalog, "ValueToKey", fields="nope").apply(record(VALUE, ORDER))


def test_filter_drops(catalog: Catalog) -> None:
    assert made(catalog, "Filter").apply(record()) is None


@pytest.mark.parametrize(
    ("name", "config", "before", "expected"),
    [
        ("HasHeaderKey", {"name": "h"}, Record("t", headers=[Header("h")]), True),
        ("HasHeaderKey", {"name": "h"}, Record("t"), False),
        ("RecordIsTombstone", {}, Record("t"), True),
        ("RecordIsTombstone", {}, Record("t", 0), False),
        ("TopicNameMatches", {"pattern": "t.*"}, Record("topic"), True),
        ("TopicNameMatches", {"pattern": "op"}, Record("topic"), False),
    ],
)
def test_predicates(catalog: Catalog, name: str, config: Mapping[str, str], before: Record, expected: bool) -> None:
    plugin = catalog.find(name, ("predicate",))
    assert plugin.cls(plugin.cls.Config.read(config)).test(before) is expected
