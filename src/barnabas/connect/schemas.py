"""Schemas of keys, values and headers: Kafka Connect's types, and its logical types Decimal, Date, Time and Timestamp.

A value is plain Python: ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``list``, ``dict`` (a struct, or a map);
of the logical types ``decimal.Decimal``, ``datetime.date``, ``datetime.time`` and ``datetime.datetime`` in UTC.
A schema says which of Kafka's types that is. Without a schema a value is what JSON can hold.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from barnabas.connect.errors import DataError

DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
SCALE: Final = "scale"
EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
EPOCH_DAY: Final = EPOCH.date()
DAY_MS: Final = 86_400_000


class Type(StrEnum):
    """Names as they stand in JSON schemas."""

    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BYTES = "bytes"
    STRING = "string"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


INTEGERS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)


@dataclass(frozen=True, slots=True)
class Schema:
    """A type, what it is called, and what it is made of."""

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()  # fields of a struct
    keys: Schema | None = None  # schema of a map's keys
    items: Schema | None = None  # schema of an array's elements or of a map's values

    def field(self, name: str) -> Field | None:
        """Return the field of this name, or None."""
        return next((each for each in self.fields if each.name == name), None)

    def as_optional(self) -> Schema:
        """Return the same schema that also admits null."""
        return self if self.optional else replace(self, optional=True)


@dataclass(frozen=True, slots=True)
class Field:
    """A named field of a struct."""

    name: str
    schema: Schema


BOOLEAN: Final = Schema(Type.BOOLEAN)
INT8: Final = Schema(Type.INT8)
INT16: Final = Schema(Type.INT16)
INT32: Final = Schema(Type.INT32)
INT64: Final = Schema(Type.INT64)
FLOAT32: Final = Schema(Type.FLOAT32)
FLOAT64: Final = Schema(Type.FLOAT64)
STRING: Final = Schema(Type.STRING)
BYTES: Final = Schema(Type.BYTES)


def struct(fields: Mapping[str, Schema] | Iterable[Field], **more: Any) -> Schema:
    """Return the schema of a struct. ``more`` are attributes of the schema, such as ``name`` and ``optional``."""
    made = tuple(Field(*item) for item in fields.items()) if isinstance(fields, Mapping) else tuple(fields)
    return Schema(Type.STRUCT, fields=made, **more)


def array(items: Schema, **more: Any) -> Schema:
    """Return the schema of an array."""
    return Schema(Type.ARRAY, items=items, **more)


def mapping(keys: Schema, values: Schema, **more: Any) -> Schema:
    """Return the schema of a map."""
    return Schema(Type.MAP, keys=keys, items=values, **more)


def decimal_schema(scale: int, **more: Any) -> Schema:
    """Return the schema of a decimal with this many digits after the point."""
    parameters = {SCALE: str(scale)} | dict(more.pop("parameters", {}))
    return Schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters, **more)


def date_schema(**more: Any) -> Schema:
    """Return the schema of a calendar date."""
    return Schema(Type.INT32, name=DATE, version=1, **more)


def time_schema(**more: Any) -> Schema:
    """Return the schema of a time of day in milliseconds."""
    return Schema(Type.INT32, name=TIME, version=1, **more)


def timestamp_schema(**more: Any) -> Schema:
    """Return the schema of a point in time in milliseconds."""
    return Schema(Type.INT64, name=TIMESTAMP, version=1, **more)


def scale_of(schema: Schema) -> int:
    """Return the scale of a decimal's schema."""
    try:
        return int(schema.parameters[SCALE])
    except (KeyError, ValueError) as error:
        raise DataError(f"the Decimal schema has no valid parameter {SCALE!r}: {dict(schema.parameters)}") from error


def to_millis(value: dt.datetime) -> int:
    """Return milliseconds since 1970; a datetime without zone counts as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    return (aware - EPOCH) // dt.timedelta(milliseconds=1)


def from_millis(millis: int) -> dt.datetime:
    """Return the point in time, in UTC, of milliseconds since 1970."""
    try:
        return EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError as error:
        raise DataError(f"{millis} ms since 1970 is a time outside of the years 1 to 9999") from error


def from_days(days: int) -> dt.date:
    """Return the date of days since 1970."""
    try:
        return EPOCH_DAY + dt.timedelta(days=days)
    except OverflowError as error:
        raise DataError(f"{days} days since 1970 is a date outside of the years 1 to 9999") from error


def time_to_millis(value: dt.time) -> int:
    """Return milliseconds since midnight."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def time_from_millis(millis: int) -> dt.time:
    """Return the time of day of milliseconds since midnight."""
    return from_millis(millis % DAY_MS).time()


def to_wire(schema: Schema, value: Any) -> Any:
    """Return what a logical value is made of (bytes or an int); other values stay as they are."""
    match schema.name:
        case _ if value is None:
            return None
        case s if s == DECIMAL and isinstance(value, decimal.Decimal):
            return unscaled_bytes(value, scale_of(schema))
        case s if s == DATE and isinstance(value, dt.date):
            return (value.date() if isinstance(value, dt.datetime) else value).toordinal() - EPOCH_DAY.toordinal()
        case s if s == TIME and isinstance(value, dt.time):
            return time_to_millis(value)
        case s if s == TIMESTAMP and isinstance(value, dt.datetime):
            return to_millis(value)
    return value


def from_wire(schema: Schema, value: Any) -> Any:
    """Return the logical value of bytes or an int; values of other schemas stay as they are."""
    match schema.name:
        case _ if value is None:
            return None
        case s if s == DECIMAL and isinstance(value, bytes):
            return from_unscaled(value, scale_of(schema))
        case s if s == DATE and isinstance(value, int):
            return from_days(value)
        case s if s == TIME and isinstance(value, int):
            return time_from_millis(value)
        case s if s == TIMESTAMP and isinstance(value, int):
            return from_millis(value)
    return value


def unscaled_bytes(value: decimal.Decimal, scale: int) -> bytes:
    """Return the two's complement, big-endian, of the value times ten to the scale, in as few bytes as Java uses."""
    exact = value.scaleb(scale, decimal.Context(prec=max(28, len(value.as_tuple().digits) + abs(scale) + 2)))
    unscaled = int(exact)
    if exact != unscaled:
        raise DataError(f"the decimal {value} has more than {scale} digits after the point")
    size = (unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()) // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)


def from_unscaled(data: bytes, scale: int) -> decimal.Decimal:
    """Return the decimal of an unscaled two's complement."""
    unscaled = int.from_bytes(data, "big", signed=True)
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return decimal.Decimal((1 if unscaled < 0 else 0, digits, -scale))


def infer(value: Any) -> Schema:
    """Return a schema that fits a value without one: as narrow as its Python type allows, optional throughout."""
    if isinstance(value, Mapping):
        return struct({str(name): infer(each) for name, each in value.items()}, optional=True)
    if isinstance(value, list | tuple):
        known = next((infer(each) for each in value if each is not None), STRING.as_optional())
        return array(known, optional=True)
    if isinstance(value, decimal.Decimal):
        exponent = value.as_tuple().exponent
        return decimal_schema(max(0, -exponent) if isinstance(exponent, int) else 0, optional=True)
    # bool before int and datetime before date: each is a subclass of the other.
    for kind, schema in (
        (bool, BOOLEAN),
        (int, INT64),
        (float, FLOAT64),
        (bytes, BYTES),
        (dt.datetime, timestamp_schema()),
        (dt.date, date_schema()),
        (dt.time, time_schema()),
    ):
        if isinstance(value, kind):
            return schema.as_optional()
    return STRING.as_optional()
