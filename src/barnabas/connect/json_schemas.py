"""Schemas as JSON, and values as what JSON can hold: the format of Kafka Connect's JsonConverter. Pure."""

from __future__ import annotations

import base64
import binascii
import decimal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from barnabas.connect.errors import DataError
from barnabas.connect.schemas import (
    DECIMAL,
    FLOATS,
    INTEGERS,
    Field,
    Schema,
    Type,
    from_wire,
    scale_of,
    to_wire,
)

DecimalFormat = Literal["BASE64", "NUMERIC"]


def schema_to_json(schema: Schema, field: str | None = None) -> dict[str, Any]:
    """Return a schema as JSON; ``field`` is its name in the struct around it."""
    made: dict[str, Any] = {"type": schema.type.value}
    if schema.type is Type.STRUCT:
        made["fields"] = [schema_to_json(each.schema, each.name) for each in schema.fields]
    if schema.keys is not None:
        made["keys"] = schema_to_json(schema.keys)
    if schema.items is not None:
        made["values" if schema.type is Type.MAP else "items"] = schema_to_json(schema.items)
    made["optional"] = schema.optional
    if schema.name is not None:
        made["name"] = schema.name
    if schema.version is not None:
        made["version"] = schema.version
    if schema.doc is not None:
        made["doc"] = schema.doc
    if schema.parameters:
        made["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        made["default"] = value_to_json(replace(schema, default=None), schema.default)
    if field is not None:
        made["field"] = field
    return made


def schema_from_json(given: Any) -> Schema | None:
    """Return the schema of JSON; raise ``DataError`` if it is none."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or "type" not in given:
        raise DataError("a schema must be a JSON object with a type")
    try:
        kind = Type(given["type"])
    except ValueError as error:
        raise DataError(f"unknown schema type {given['type']!r}") from error
    schema = Schema(
        kind,
        optional=bool(given.get("optional", False)),
        name=given.get("name"),
        version=given.get("version"),
        doc=given.get("doc"),
        parameters={str(key): str(value) for key, value in (given.get("parameters") or {}).items()},
        fields=tuple(_field(each) for each in given.get("fields", ())) if kind is Type.STRUCT else (),
        keys=_inner(given, "keys") if kind is Type.MAP else None,
        items=_inner(given, "values" if kind is Type.MAP else "items") if kind in (Type.MAP, Type.ARRAY) else None,
    )
    if given.get("default") is not None:
        return replace(schema, default=value_from_json(schema, given["default"]))
    return schema


def _inner(given: Mapping[str, Any], name: str) -> Schema:
    inner = schema_from_json(given.get(name))
    if inner is None:
        raise DataError(f"a schema of type {given['type']} must have {name}")
    return inner


def _field(given: Any) -> Field:
    schema = schema_from_json(given)
    if schema is None or not isinstance(given.get("field"), str):
        raise DataError("a field of a struct schema must have a name in 'field'")
    return Field(given["field"], schema)


def value_to_json(
    schema: Schema | None, value: Any, decimals: DecimalFormat = "BASE64", *, use_default: bool = True
) -> Any:
    """Return a value as what JSON can hold; with ``use_default`` a default instead of null."""
    if schema is None:
        return _plain(value)
    if value is None and use_default:
        value = schema.default
    if value is None:
        if not schema.optional:
            raise DataError(f"a null value for a {schema.type} that is not optional")
        return None
    if schema.name == DECIMAL and decimals == "NUMERIC" and isinstance(value, decimal.Decimal):
        return value
    value = to_wire(schema, value)
    match schema.type:
        case Type.STRUCT:
            _expect(schema, value, Mapping)
            return {
                each.name: value_to_json(each.schema, value.get(each.name), decimals, use_default=use_default)
                for each in schema.fields
            }
        case Type.ARRAY:
            _expect(schema, value, list | tuple)
            return [value_to_json(schema.items, each, decimals, use_default=use_default) for each in value]
        case Type.MAP:
            return _map_to_json(schema, value, decimals)
        case Type.BYTES:
            _expect(schema, value, bytes)
            return base64.b64encode(value).decode()
    return checked(schema, value)


def _map_to_json(schema: Schema, value: Any, decimals: DecimalFormat) -> Any:
    """Return an object if keys are strings, else a list of pairs."""
    _expect(schema, value, Mapping)
    if schema.keys is not None and schema.keys.type is Type.STRING and not schema.keys.optional:
        return {key: value_to_json(schema.items, each, decimals) for key, each in value.items()}
    return [
        [value_to_json(schema.keys, key, decimals), value_to_json(schema.items, each, decimals)]
        for key, each in value.items()
    ]


def value_from_json(schema: Schema | None, value: Any) -> Any:
    """Return the value of JSON for a schema."""
    if schema is None or value is None:
        if schema is not None and not schema.optional and schema.default is None:
            raise DataError(f"a null value for a {schema.type} that is not optional")
        return value if schema is None else schema.default
    match schema.type:
        case Type.STRUCT:
            _expect(schema, value, Mapping)
            return {each.name: value_from_json(each.schema, value.get(each.name)) for each in schema.fields}
        case Type.ARRAY:
            _expect(schema, value, list)
            return [value_from_json(schema.items, each) for each in value]
        case Type.MAP:
            return _map_from_json(schema, value)
        case Type.BYTES:
            return from_wire(schema, _bytes(schema, value))
    return from_wire(schema, checked(schema, value))


def _map_from_json(schema: Schema, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: value_from_json(schema.items, each) for key, each in value.items()}
    _expect(schema, value, list)
    try:
        return {value_from_json(schema.keys, key): value_from_json(schema.items, each) for key, each in value}
    except (TypeError, ValueError) as error:
        raise DataError("a map without string keys must be a list of pairs") from error


def _bytes(schema: Schema, value: Any) -> Any:
    if schema.name == DECIMAL and isinstance(value, int | float | decimal.Decimal):
        return decimal.Decimal(str(value)).quantize(decimal.Decimal(1).scaleb(-scale_of(schema)))
    if not isinstance(value, str):
        raise DataError(f"bytes must be base64 text in JSON, not {type(value).__name__}")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise DataError("bytes must be base64 text in JSON") from error


def checked(schema: Schema, value: Any) -> Any:
    """Return a value of a primitive type if it fits its schema; raise ``DataError`` if not."""
    kind = schema.type
    if kind in INTEGERS:
        bits = INTEGERS[kind]
        if isinstance(value, bool) or not isinstance(value, int) or not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise DataError(f"{value!r} is not an {kind}")
    elif kind in FLOATS:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DataError(f"{value!r} is not a {kind}")
        return float(value)
    else:
        _expect(schema, value, bool if kind is Type.BOOLEAN else str)
    return value


def _expect(schema: Schema, value: Any, kind: Any) -> None:
    if not isinstance(value, kind):
        raise DataError(f"the schema says {schema.type} and the value is a {type(value).__name__}")


def _plain(value: Any) -> Any:
    """Return a value without a schema: bytes as base64, times and decimals as msgspec writes them."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
