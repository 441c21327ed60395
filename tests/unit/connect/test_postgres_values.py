"""Values of PostgreSQL's text format become Debezium's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.connectors.postgres import text_values
from barnabas.connect.connectors.postgres.column_types import Column, PgType, column_type
from barnabas.connect.connectors.postgres.pgoutput import UNCHANGED
from barnabas.connect.connectors.postgres.selection import Selection
from barnabas.connect.connectors.postgres.settings import PostgresConfig
from barnabas.connect.errors import ConfigError, DataError
from barnabas.connect.json_schemas import value_to_json

NEEDED = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p"}


def config(**more: str) -> PostgresConfig:
    return PostgresConfig.read(NEEDED | {key.replace("_", "."): value for key, value in more.items()})


@pytest.mark.parametrize(
    ("name", "modifier", "text", "value", "schema"),
    [
        ("bool", -1, "t", True, None),
        ("int2", -1, "-7", -7, None),
        ("float8", -1, "1.5", 1.5, None),
        ("numeric", ((10 << 16) | 2) + 4, "1.50", Decimal("1.50"), "org.apache.kafka.connect.data.Decimal"),
        ("numeric", ((3 << 16) | (-2 & 0x7FF)) + 4, "12300", Decimal(12300), "org.apache.kafka.connect.data.Decimal"),
        ("numeric", -1, "1.50", {"scale": 1, "value": b"\x0f"}, "io.debezium.data.VariableScaleDecimal"),
        ("numeric", -1, "NaN", None, "io.debezium.data.VariableScaleDecimal"),
        ("money", -1, "-$1,234.50", Decimal("-1234.50"), "org.apache.kafka.connect.data.Decimal"),
        ("date", -1, "2026-01-02", 20455, "io.debezium.time.Date"),
        ("date", -1, "0001-01-01 BC", -719528, "io.debezium.time.Date"),
        ("time", -1, "03:04:05.678901", 11045678901, "io.debezium.time.MicroTime"),
        ("time", 3, "03:04:05.678", 11045678, "io.debezium.time.Time"),
        ("time", -1, "24:00:00", 86_400_000_000, "io.debezium.time.MicroTime"),
        ("timestamp", -1, "2026-01-02 03:04:05.678901", 1767323045678901, "io.debezium.time.MicroTimestamp"),
        ("timestamp", 0, "2026-01-02 03:04:05", 1767323045000, "io.debezium.time.Timestamp"),
        ("timestamp", -1, "infinity", 9223372036825200000, "io.debezium.time.MicroTimestamp"),
        (
            "timestamptz",
            -1,
            "2026-01-02 03:04:05.678901+00",
            "2026-01-02T03:04:05.678901Z",
            "io.debezium.time.ZonedTimestamp",
        ),
        (
            "timestamptz",
            -1,
            "2026-01-02 03:04:05.5+00",
            "2026-01-02T03:04:05.500000Z",
            "io.debezium.time.ZonedTimestamp",
        ),
        ("timetz", -1, "01:30:00.5+02", "23:30:00.5Z", "io.debezium.time.ZonedTime"),
        ("interval", -1, "P1Y2M3DT4H5M6.5S", 37091106500000, "io.debezium.time.MicroDuration"),
        ("interval", -1, "PT-1S", -1_000_000, "io.debezium.time.MicroDuration"),
        ("bytea", -1, "\\x00ff", b"\0\xff", None),
        ("bit", 1, "1", True, None),
        ("bit", 10, "1000000001", b"\x01\x02", "io.debezium.data.Bits"),
        ("varbit", -1, "101", b"\x05", "io.debezium.data.Bits"),
        (
            "uuid",
            -1,
            "6f2c1a7e-0000-4000-8000-000000000001",
            "6f2c1a7e-0000-4000-8000-000000000001",
            "io.debezium.data.Uuid",
        ),
        ("jsonb", -1, '{"a": 1}', '{"a": 1}', "io.debezium.data.Json"),
        ("xml", -1, "<a/>", "<a/>", "io.debezium.data.Xml"),
        ("hstore", -1, '"a"=>"1", "b\\"c"=>NULL', '{"a":"1","b\\"c":null}', "io.debezium.data.Json"),
        ("inet", -1, "10.0.0.1/8", "10.0.0.1/8", None),
        ("int4range", -1, "[1,5)", "[1,5)", None),
        ("oid", -1, "4294967295", 4294967295, None),
    ],
)
def test_a_value_has_debeziums_form(name: str, modifier: int, text: str, value: Any, schema: str | None) -> None:
    kind = column_type(Column("c", PgType(1, name), modifier), config())
    assert kind is not None
    assert kind.value(text.encode()) == value
    assert kind.schema.name == schema
    value_to_json(kind.schema, value)


def test_points_and_geometries_have_well_known_binary() -> None:
    point = text_values.point("(1.5,-2)")
    assert (point["x"], point["y"], len(point["wkb"])) == (1.5, -2.0, 21)
    ewkb = "0101000020E6100000000000000000F03F0000000000000040"
    assert text_values.ewkb(ewkb)["srid"] == 4326


def test_types_that_debezium_does_not_know_are_left_out_or_bytes() -> None:
    column = Column("c", PgType(1, "tsquery"))
    assert column_type(column, config()) is None
    kind = column_type(column, config(include_unknown_datatypes="true"))
    assert kind is not None
    assert kind.value(b"'a'") == b"'a'"


def test_arrays_enums_and_other_modes() -> None:
    numbers = column_type(Column("c", PgType(1, "_int4", element=PgType(2, "int4"))), config())
    assert numbers is not None
    assert numbers.value(b"{1,NULL,3}") == [1, None, 3]
    assert numbers.value(b"[0:1]={1,2}") == [1, 2]
    assert numbers.value(UNCHANGED) == list(b"__debezium_unavailable_value")
    texts = column_type(Column("c", PgType(1, "_text", element=PgType(2, "text"))), config())
    assert texts is not None
    assert texts.value(b'{a,"b,\\"c\\\\","",NULL,"NULL"}') == ["a", 'b,"c\\', "", None, "NULL"]
    mood = column_type(Column("c", PgType(1, "mood", "e", labels=("sad", "ok"))), config())
    assert mood is not None
    assert mood.schema.parameters == {"allowed": "sad,ok"}
    double = column_type(Column("c", PgType(1, "numeric")), config(decimal_handling_mode="double"))
    assert double is not None
    assert double.value(b"1.5") == 1.5
    iso = column_type(Column("c", PgType(1, "interval")), config(interval_handling_mode="string"))
    assert iso is not None
    assert iso.value(b"P1Y2M3DT4H5M6.5S") == "P1Y2M3DT4H5M6.5S"
    moment = column_type(Column("c", PgType(1, "timestamp")), config(time_precision_mode="connect"))
    assert moment is not None
    assert moment.value(b"2026-01-02 03:04:05.678901") == dt.datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC)


@pytest.mark.parametrize("text", ["{", "{1", '{"a', "}{"])
def test_a_malformed_array_is_an_error(text: str) -> None:
    with pytest.raises((DataError, ValueError)):
        text_values.array(text, str)


@given(st.dates())
def test_days_count_from_1970(date: dt.date) -> None:
    assert text_values.days(f"{date.year:04d}-{date.month:02d}-{date.day:02d}") == (date - dt.date(1970, 1, 1)).days


def test_lists_of_tables_and_columns_are_whole_names_in_any_case() -> None:
    chosen = Selection(config(table_include_list="public.orders,sales\\..*", column_exclude_list=".*\\.secret"))
    assert chosen.has_table("public", "Orders")
    assert chosen.has_table("sales", "x")
    assert not chosen.has_table("public", "orders_old")
    assert not chosen.has_column("public", "orders", "secret")
    assert not Selection(config()).has_table("pg_catalog", "pg_class")
    keys = Selection(config(message_key_columns="public\\.o.*:a,b;public.x:c"))
    assert keys.key_columns("public", "orders") == ("a", "b")


def test_keys_that_do_not_exist_or_contradict_are_named() -> None:
    with pytest.raises(ConfigError, match=r"snapshot\.speed"):
        config(snapshot_speed="high")
    with pytest.raises(ConfigError, match="not both"):
        config(table_include_list="a", table_exclude_list="b")
    with pytest.raises(ConfigError, match=r"slot\.name"):
        config(slot_name="With Space")
    assert "geheim" not in repr(config(database_password="geheim"))
