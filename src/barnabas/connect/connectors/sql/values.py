"""Values between records and SQL: types of columns, and logical values of Kafka and Debezium for drivers. Pure."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from barnabas.connect.errors import DataError
from barnabas.connect.schemas import (
    DATE,
    DECIMAL,
    EPOCH,
    EPOCH_DAY,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    from_unscaled,
)

_POSTGRES: Final[Mapping[Type, str]] = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "smallint",
    Type.INT16: "smallint",
    Type.INT32: "integer",
    Type.INT64: "bigint",
    Type.FLOAT32: "real",
    Type.FLOAT64: "double precision",
    Type.STRING: "text",
    Type.BYTES: "bytea",
    Type.STRUCT: "jsonb",
    Type.MAP: "jsonb",
}
_POSTGRES_NAMED: Final[Mapping[str, str]] = {
    DATE: "date",
    TIME: "time",
    TIMESTAMP: "timestamp",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Time": "time",
    "io.debezium.time.MicroTime": "time",
    "io.debezium.time.Timestamp": "timestamp",
    "io.debezium.time.MicroTimestamp": "timestamp",
    "io.debezium.time.ZonedTimestamp": "timestamptz",
    "io.debezium.time.ZonedTime": "timetz",
    "io.debezium.data.Json": "jsonb",
    "io.debezium.data.Uuid": "uuid",
    "io.debezium.data.VariableScaleDecimal": "numeric",
}
_SQLITE: Final[Mapping[Type, str]] = {
    Type.BOOLEAN: "integer",
    Type.INT8: "integer",
    Type.INT16: "integer",
    Type.INT32: "integer",
    Type.INT64: "integer",
    Type.FLOAT32: "real",
    Type.FLOAT64: "real",
    Type.BYTES: "blob",
}


def postgres_type(schema: Schema) -> str:
    """Return the column type of a schema in PostgreSQL."""
    if schema.name == DECIMAL:
        return "numeric"
    if schema.name is not None and schema.name in _POSTGRES_NAMED:
        return _POSTGRES_NAMED[schema.name]
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        inner = postgres_type(schema.items)
        return "jsonb" if inner == "jsonb" else f"{inner}[]"
    return _POSTGRES[schema.type]


def sqlite_type(schema: Schema) -> str:
    """Return the column type of a schema in SQLite; decimals and times are exact texts there."""
    if schema.name == DECIMAL or schema.name in _POSTGRES_NAMED:
        return "text"
    return _SQLITE.get(schema.type, "text")


def _from_days(value: int) -> dt.date:
    return EPOCH_DAY + dt.timedelta(days=value)


def _from_micros(value: int) -> dt.datetime:
    return (EPOCH + dt.timedelta(microseconds=value)).replace(tzinfo=None)


def _time(micros: int) -> dt.time:
    return _from_micros(micros % 86_400_000_000).time()


_DEBEZIUM: Final[Mapping[str, Callable[[Any], Any]]] = {
    "io.debezium.time.Date": _from_days,
    "io.debezium.time.Time": lambda value: _time(value * 1000),
    "io.debezium.time.MicroTime": _time,
    "io.debezium.time.Timestamp": lambda value: _from_micros(value * 1000),
    "io.debezium.time.MicroTimestamp": _from_micros,
    "io.debezium.data.VariableScaleDecimal": lambda value: from_unscaled(value["value"], value["scale"]),
    TIMESTAMP: lambda value: value.astimezone(dt.UTC).replace(tzinfo=None) if isinstance(value, dt.datetime) else value,
}


def plain(schema: Schema | None, value: Any) -> Any:
    """Return a field's value as drivers take it: dates, times and decimals; objects as JSON text."""
    if value is None:
        return None
    try:
        if schema is not None and schema.name is not None and schema.name in _DEBEZIUM:
            return _DEBEZIUM[schema.name](value)
    except (OverflowError, TypeError, KeyError) as error:
        raise DataError(f"{value!r} is not a valid {schema.name if schema else 'value'}: {error}") from error
    if isinstance(value, Mapping):
        return msgspec.json.encode(value).decode()
    if isinstance(value, list | tuple):
        inner = schema.items if schema is not None else None
        if any(isinstance(each, Mapping) for each in value):
            return msgspec.json.encode(value).decode()
        return [plain(inner, each) for each in value]
    return value


def sqlite_value(value: Any) -> Any:
    """Return a value that SQLite stores: exact texts for decimals and times, JSON for lists."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return msgspec.json.encode(value).decode()
    return value
