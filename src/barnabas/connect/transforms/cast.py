"""Cast: numbers, booleans and text as each other, with Java's rules of narrowing."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import struct
from collections.abc import Callable
from typing import Annotated, Any, Final

from barnabas.connect.config import Config, doc
from barnabas.connect.errors import DataError
from barnabas.connect.records import Record
from barnabas.connect.schemas import INTEGERS, Field, Schema, Type, to_wire
from barnabas.connect.transforms.sides import (
    SidedTransform,
    as_map,
    as_struct,
    basics,
    field_value,
    for_both_sides,
)

TARGETS: Final = {
    "int8": Type.INT8,
    "int16": Type.INT16,
    "int32": Type.INT32,
    "int64": Type.INT64,
    "float32": Type.FLOAT32,
    "float64": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
}


class CastConfig(Config):
    """Keys of Cast."""

    spec: Annotated[list[str], doc("Pairs field:type, or one type for the whole key or value")]
    replace_null_with_default: Annotated[bool, doc("Use a field's default value where the field is null")] = True

    def check(self) -> list[str]:
        """Return what is wrong with the pairs."""
        if not self.spec:
            return ["Invalid value [] for configuration spec: at least one field to cast is needed"]
        problems = []
        for pair in self.spec:
            _, _, kind = pair.rpartition(":")
            if kind.strip().lower() not in TARGETS or pair.count(":") > 1:
                problems.append(f"Invalid value {pair} for configuration spec: types are {', '.join(TARGETS)}")
        if len(self.spec) > 1 and any(":" not in pair for pair in self.spec):
            problems.append("Invalid value for configuration spec: a type for the whole must stand alone")
        return problems


class Cast(SidedTransform[CastConfig]):
    """Cast fields, or the whole key or value, to another type."""

    Config = CastConfig

    def __init__(self, config: CastConfig) -> None:
        super().__init__(config)
        pairs = [pair.rpartition(":") for pair in config.spec]
        self._casts = {field.strip(): TARGETS[kind.strip().lower()] for field, colon, kind in pairs if colon}
        self._whole = None if self._casts else TARGETS[config.spec[0].strip().lower()]

    def apply(self, record: Record) -> Record:
        """Return the record with cast fields; null stays null."""
        schema, data = self.schema_of(record), self.data_of(record)
        if data is None:
            return record
        if schema is None:
            if self._whole is not None:
                return self.changed(record, None, cast(None, data, self._whole))
            values = dict(as_map(data, "Cast"))
            made = {name: cast(None, values.get(name), kind) for name, kind in self._casts.items()}
            return self.changed(record, None, values | made)
        new = self.rebuilt(schema, self._schema)
        if self._whole is not None:
            return self.changed(record, new, cast(schema, data, self._whole))
        return self.changed(record, new, self._struct(schema, data))

    def _struct(self, schema: Schema, data: Any) -> dict[str, Any]:
        values = as_struct(schema, data, "Cast")
        made = {}
        for each in schema.fields:
            value = field_value(each, values, use_default=self.config.replace_null_with_default)
            kind = self._casts.get(each.name)
            made[each.name] = value if kind is None else cast(each.schema, value, kind)
        return made

    def _schema(self, schema: Schema) -> Schema:
        if self._whole is not None:
            default = cast(schema, schema.default, self._whole)
            return Schema(
                self._whole, schema.optional, default, schema.name, schema.version, schema.doc, schema.parameters
            )
        fields = []
        for each in schema.fields:
            kind = self._casts.get(each.name)
            if kind is None:
                fields.append(each)
            else:
                default = cast(each.schema, each.schema.default, kind)
                fields.append(Field(each.name, Schema(kind, each.schema.optional, default)))
        default = None if schema.default is None else self._struct(schema, schema.default)
        return basics(schema, fields=tuple(fields), optional=schema.optional, default=default)


def cast(schema: Schema | None, value: Any, target: Type) -> Any:
    """Return a value as another type; raise ``DataError`` where Java's Cast would."""
    if value is None:
        return None
    if schema is not None and target is not Type.STRING:
        value = to_wire(schema, value) if not isinstance(value, decimal.Decimal) else value
    if isinstance(value, list | dict):
        raise DataError(f"Cast: a {type(value).__name__} cannot be cast")
    if target in INTEGERS:
        return _integer(value, INTEGERS[target])
    return _CASTS[target](value)


def _integer(value: Any, bits: int) -> int:
    match value:
        case bool():
            return int(value)
        case int():
            return _wrapped(value, bits)
        case float():
            # Java goes through int or long, which stop at their limits, and then cuts off.
            wide = 64 if bits == 64 else 32
            whole = 0 if math.isnan(value) else max(-(1 << wide - 1), min((1 << wide - 1) - 1, _whole(value)))
            return _wrapped(whole, bits)
        case decimal.Decimal():
            return _wrapped(int(value), bits)
        case str():
            number = _parsed(value, int)
            if not -(1 << bits - 1) <= number < 1 << bits - 1:
                raise DataError(f"Cast: {value!r} does not fit {bits} bits")
            return int(number)
    raise DataError(f"Cast: a {type(value).__name__} cannot be cast to a number")


def _whole(value: float) -> int:
    return (1 << 64) * (1 if value > 0 else -1) if math.isinf(value) else int(value)


def _wrapped(value: int, bits: int) -> int:
    cut = value & ((1 << bits) - 1)
    return cut - (1 << bits) if cut >> bits - 1 else cut


def _parsed(text: str, kind: Callable[[str], Any]) -> Any:
    if "_" in text or (kind is int and text != text.strip()):
        raise DataError(f"Cast: {text!r} is not a number")
    try:
        return kind(text)
    except ValueError as error:
        raise DataError(f"Cast: {text!r} is not a number") from error


def _double(value: Any) -> float:
    match value:
        case bool() | int() | float() | decimal.Decimal():
            return float(value)
        case str():
            return float(_parsed(value, float))
    raise DataError(f"Cast: a {type(value).__name__} cannot be cast to a number")


def _single(value: Any) -> float:
    wide = _double(value)
    try:
        return float(struct.unpack(">f", struct.pack(">f", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, wide)


def _boolean(value: Any) -> bool:
    match value:
        case bool():
            return value
        case int() | float() | decimal.Decimal():
            return _integer(value, 64) != 0
        case str():
            return value.lower() == "true"
    raise DataError(f"Cast: a {type(value).__name__} cannot be cast to a boolean")


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime():
            return value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
        case dt.date():
            return value.isoformat()
        case dt.time():
            return value.strftime("%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
        case float():
            return java_double(value)
    return str(value)


def java_double(value: float) -> str:
    """Return the text that Java gives a double: ``1.0E10`` from ten million on and below a thousandth."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(decimal.Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = decimal.Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


_CASTS: Final[dict[Type, Callable[[Any], Any]]] = {
    Type.FLOAT32: _single,
    Type.FLOAT64: _double,
    Type.BOOLEAN: _boolean,
    Type.STRING: _text,
}
CastKey, CastValue = for_both_sides(Cast)
