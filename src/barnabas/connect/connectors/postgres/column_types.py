"""Schemas and conversions of PostgreSQL's column types: Debezium's, in its default modes and others. Pure."""

from __future__ import annotations

import base64
import decimal
import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.connect.connectors.postgres import text_values
from barnabas.connect.connectors.postgres.defaults import default_value
from barnabas.connect.connectors.postgres.pgoutput import Unchanged, Value
from barnabas.connect.connectors.postgres.settings import PostgresConfig
from barnabas.connect.schemas import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    array,
    date_schema,
    decimal_schema,
    from_wire,
    mapping,
    scale_of,
    struct,
    time_schema,
    timestamp_schema,
    unscaled_bytes,
)

MODIFIER_HEADER: Final = 4  # PostgreSQL adds it to lengths and precisions
MICRO_DIGITS: Final = 6
MILLI_DIGITS: Final = 3
BITS_UNLIMITED: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class PgType:
    """A type of the server's catalog."""

    oid: int
    name: str
    kind: str = "b"  # b base, e enum, d domain, r range, m multirange, c composite
    element: PgType | None = None  # type of an array's elements
    labels: tuple[str, ...] = ()  # values of an enum


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; a domain's is that of its base type."""

    name: str
    type: PgType
    modifier: int = -1
    optional: bool = True
    default: str | None = None  # the expression


@dataclass(frozen=True, slots=True)
class ColumnType:
    """Schema of a column and how its text becomes a value."""

    schema: Schema
    parse: Callable[[str], Any]
    unavailable: Any = None  # value for a large value that an update did not touch
    missing: Any = None  # value where the server sends none although the column cannot be null: in deletes, for one

    def value(self, given: Value) -> Any:
        """Return the value of what the server has sent."""
        if given is None:
            return self.missing
        made = self.unavailable if isinstance(given, Unchanged) else self.parse(given.decode())
        return self.missing if made is None else made


def named(schema: Schema, name: str, **more: Any) -> Schema:
    """Return a schema with one of Debezium's names."""
    return Schema(schema.type, name=name, version=1, **more)


POINT: Final = struct(
    [
        Field("x", FLOAT64),
        Field("y", FLOAT64),
        Field("wkb", BYTES.as_optional()),
        Field("srid", INT32.as_optional()),
    ],
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
GEOMETRY_FIELDS: Final = (Field("wkb", BYTES), Field("srid", INT32.as_optional()))
VARIABLE_SCALE: Final = struct(
    [Field("scale", INT32), Field("value", BYTES)],
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)
_TEXTS: Final = frozenset(
    (
        *("text", "varchar", "bpchar", "char", "name", "citext", "isbn", "inet", "cidr", "macaddr", "macaddr8"),
        *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
    )
)
_NAMED_TEXTS: Final[Mapping[str, str]] = {
    "uuid": "io.debezium.data.Uuid",
    "json": "io.debezium.data.Json",
    "jsonb": "io.debezium.data.Json",
    "xml": "io.debezium.data.Xml",
    "ltree": "io.debezium.data.Ltree",
    "tsvector": "io.debezium.data.Tsvector",
}
_SIMPLE: Final[Mapping[str, tuple[Schema, Callable[[str], Any]]]] = {
    "bool": (BOOLEAN, text_values.boolean),
    "int2": (INT16, int),
    "int4": (INT32, int),
    "int8": (INT64, int),
    "oid": (INT64, int),
    "float4": (FLOAT32, float),
    "float8": (FLOAT64, float),
    "timetz": (named(STRING, "io.debezium.time.ZonedTime"), text_values.zoned_time),
    "point": (POINT, text_values.point),
    "geometry": (
        struct(GEOMETRY_FIELDS, name="io.debezium.data.geometry.Geometry", version=1, doc="Geometry"),
        text_values.ewkb,
    ),
    "geography": (
        struct(GEOMETRY_FIELDS, name="io.debezium.data.geometry.Geography", version=1, doc="Geography"),
        text_values.ewkb,
    ),
    "vector": (
        array(FLOAT64, name="io.debezium.data.DoubleVector", version=1),
        lambda text: [float(each) for each in text.strip("[]").split(",")],
    ),
    "halfvec": (
        array(FLOAT32, name="io.debezium.data.FloatVector", version=1),
        lambda text: [float(each) for each in text.strip("[]").split(",")],
    ),
}


def column_type(column: Column, config: PostgresConfig) -> ColumnType | None:
    """Return the type of a column; None if it is unknown and unknown ones are left out."""
    made = _array(column, config) if column.type.element is not None else _scalar(column, config)
    if made is None:
        if not config.include_unknown_datatypes:
            return None
        made = BYTES, str.encode
    schema, parse = made
    default = default_value(column.type.name, column.type.kind, column.default, schema, parse)
    missing = _missing(schema) if default is None else default
    if column.type.name == "numeric" and schema.type is Type.STRING:  # with the column's digits after the point
        step = decimal.Decimal(1).scaleb(-numeric_scale(column))
        missing = f"{decimal.Decimal(missing or 0).quantize(step):f}"
        default = None if default is None else missing
    shown = replace(schema, optional=column.optional, default=default)
    unavailable = _unavailable(schema, config.unavailable_value_placeholder)
    return ColumnType(shown, parse, unavailable, None if column.optional else missing)


def _array(column: Column, config: PostgresConfig) -> tuple[Schema, Callable[[str], Any]] | None:
    element = column.type.element
    assert element is not None
    made = _scalar(Column(column.name, element, column.modifier), config)
    if made is None:
        return None
    schema, parse = made
    items = schema if element.kind == "e" else schema.as_optional()  # as Debezium has it
    return array(items), lambda text: text_values.array(text, parse)


def _scalar(column: Column, config: PostgresConfig) -> tuple[Schema, Callable[[str], Any]] | None:
    name = column.type.name
    if column.type.kind == "e":
        parameters = {"allowed": ",".join(column.type.labels)}
        return named(STRING, "io.debezium.data.Enum", parameters=parameters), str
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name in _TEXTS:
        return STRING, str
    if name in _NAMED_TEXTS:
        return named(STRING, _NAMED_TEXTS[name]), str
    match name:
        case "numeric":
            return _numeric(column, config)
        case "money":
            return _money(config)
        case "bytea":
            return _binary(config)
        case "timestamptz":
            digits = MICRO_DIGITS if column.modifier < 0 else column.modifier
            schema = named(STRING, "io.debezium.time.ZonedTimestamp")
            return schema, lambda text: text_values.zoned_timestamp(text, digits)
        case "date" | "time" | "timestamp":
            return _temporal(column, config)
        case "interval" if config.interval_handling_mode == "numeric":
            return named(INT64, "io.debezium.time.MicroDuration"), text_values.interval_us
        case "interval":
            return named(STRING, "io.debezium.time.Interval"), text_values.interval_iso
        case "bit" | "varbit":
            return _bits(column)
        case "hstore" if config.hstore_handling_mode == "json":
            return named(STRING, "io.debezium.data.Json"), text_values.hstore_json
        case "hstore":
            return mapping(STRING, STRING.as_optional()), text_values.hstore
    return None


def _numeric(column: Column, config: PostgresConfig) -> tuple[Schema, Callable[[str], Any]]:
    if config.decimal_handling_mode == "double":
        return FLOAT64, float
    if config.decimal_handling_mode == "string":
        return STRING, str
    if column.modifier < MODIFIER_HEADER:
        return VARIABLE_SCALE, _variable_scale
    precision, scale = (column.modifier - MODIFIER_HEADER) >> 16, numeric_scale(column)
    return decimal_schema(scale, parameters={"connect.decimal.precision": str(precision)}), text_values.number


def numeric_scale(column: Column) -> int:
    """Return the digits after the point of a numeric column; 0 if they vary."""
    if column.modifier < MODIFIER_HEADER:
        return 0
    return (((column.modifier - MODIFIER_HEADER) & 0x7FF) ^ 1024) - 1024  # eleven bits with a sign


def _variable_scale(text: str) -> dict[str, Any] | None:
    value = text_values.number(text)
    if value is None:
        return None
    exact = value.normalize(decimal.Context(prec=max(28, len(text))))
    exponent = exact.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    return {"scale": scale, "value": unscaled_bytes(exact, scale)}


def _money(config: PostgresConfig) -> tuple[Schema, Callable[[str], Any]]:
    if config.decimal_handling_mode == "double":
        return FLOAT64, lambda text: float(text_values.money(text))
    if config.decimal_handling_mode == "string":
        return STRING, lambda text: f"{text_values.money(text):f}"
    digits = config.money_fraction_digits
    step = decimal.Decimal(1).scaleb(-digits)
    return decimal_schema(digits), lambda text: text_values.money(text).quantize(step, decimal.ROUND_HALF_UP)


def _binary(config: PostgresConfig) -> tuple[Schema, Callable[[str], Any]]:
    encoders: dict[str, Callable[[bytes], bytes]] = {
        "base64": base64.b64encode,
        "base64-url-safe": base64.urlsafe_b64encode,
    }
    if config.binary_handling_mode == "bytes":
        return BYTES, text_values.binary
    if config.binary_handling_mode == "hex":
        return STRING, lambda text: text[2:]
    encode = encoders[config.binary_handling_mode]
    return STRING, lambda text: encode(text_values.binary(text)).decode()


def _temporal(column: Column, config: PostgresConfig) -> tuple[Schema, Callable[[str], Any]]:
    mode = config.time_precision_mode
    digits = MICRO_DIGITS if column.modifier < 0 else column.modifier
    if column.type.name == "date":
        if mode == "connect":
            return date_schema(), lambda text: from_wire(date_schema(), text_values.days(text))
        return named(INT32, "io.debezium.time.Date"), text_values.days
    is_milli = digits <= MILLI_DIGITS or mode == "connect"
    if column.type.name == "timestamp":
        if mode == "connect":
            return timestamp_schema(), lambda text: from_wire(timestamp_schema(), text_values.timestamp_ms(text))
        if is_milli:
            return named(INT64, "io.debezium.time.Timestamp"), text_values.timestamp_ms
        return named(INT64, "io.debezium.time.MicroTimestamp"), text_values.timestamp_us
    if mode == "connect":
        return time_schema(), lambda text: from_wire(time_schema(), text_values.time_ms(text))
    if is_milli and mode == "adaptive":
        return named(INT32, "io.debezium.time.Time"), text_values.time_ms
    return named(INT64, "io.debezium.time.MicroTime"), text_values.time_us


def _bits(column: Column) -> tuple[Schema, Callable[[str], Any]]:
    length = column.modifier if column.modifier > 0 else BITS_UNLIMITED
    if length == 1:
        return BOOLEAN, text_values.bit
    return named(BYTES, "io.debezium.data.Bits", parameters={"length": str(length)}), text_values.bits


def _missing(schema: Schema) -> Any:
    """Return Debezium's value for a null in a column that cannot be null."""
    named_ones = {
        "io.debezium.time.ZonedTimestamp": "1970-01-01T00:00:00Z",
        "io.debezium.time.ZonedTime": "00:00:00Z",
    }
    if schema.name in named_ones:
        return named_ones[schema.name]
    if schema.type is Type.STRUCT:
        return {each.name: None if each.schema.optional else _missing(each.schema) for each in schema.fields}
    if schema.name == DECIMAL:
        return decimal.Decimal(0).scaleb(-scale_of(schema))
    kinds: dict[Type, Any] = {Type.BOOLEAN: False, Type.STRING: "", Type.BYTES: b"", Type.ARRAY: [], Type.MAP: {}}
    return from_wire(schema, kinds.get(schema.type, 0))


def _unavailable(schema: Schema, placeholder: str) -> Any:
    """Return the placeholder in the type of the column; None for types that the server never stores aside."""
    if schema.type is Type.ARRAY and schema.items is not None:
        if schema.items.type in (Type.INT32, Type.INT64) and schema.items.name not in (DATE, TIME, TIMESTAMP):
            return list(placeholder.encode())
        item = _unavailable_item(schema.items, placeholder)
        return None if item is None else [item]
    if schema.type is Type.MAP:
        return {placeholder: placeholder}
    return placeholder if schema.type is Type.STRING else placeholder.encode() if schema == BYTES else None


def _unavailable_item(schema: Schema, placeholder: str) -> Any:
    if schema.name == "io.debezium.data.Uuid":
        digest = hashlib.md5(placeholder.encode(), usedforsecurity=False).digest()
        return str(uuid.UUID(bytes=digest, version=3))
    if schema.type is Type.BYTES and schema.name is None:
        return placeholder.encode()
    return placeholder if schema.type is Type.STRING else None
