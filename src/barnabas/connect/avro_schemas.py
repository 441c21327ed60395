"""Connect's schemas and values as Avro's, and back, by the rules of Confluent's Avro converter. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from barnabas.connect.errors import DataError
from barnabas.connect.json_schemas import value_to_json
from barnabas.connect.schemas import (
    DATE,
    DECIMAL,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    array,
    date_schema,
    decimal_schema,
    mapping,
    scale_of,
    struct,
    time_schema,
    timestamp_schema,
)

NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"  # of structs without a name
ENUM: Final = f"{NAMESPACE}.Enum"  # parameter of strings that are enums in Avro
PRECISION: Final = 64  # of decimals that name none
PRECISION_KEY: Final = "connect.decimal.precision"
_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_PLAIN: Final = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_FROM_PLAIN: Final = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
}
_LOGICAL: Final = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}


class AvroWriter:
    """The Avro schema of a schema; structs that were written once are named afterwards."""

    def __init__(self) -> None:
        self._written: dict[str, Schema] = {}

    def schema(self, schema: Schema) -> Any:
        """Return the Avro schema as JSON."""
        made = self._bare(schema)
        if not schema.optional:
            return made
        return [made, "null"] if schema.default is not None else ["null", made]

    def _bare(self, schema: Schema) -> Any:
        if schema.type is Type.STRUCT:
            return self._record(schema)
        made: dict[str, Any]
        if schema.type is Type.ARRAY:
            assert schema.items is not None
            made = {"type": "array", "items": self.schema(schema.items)}
        elif schema.type is Type.MAP:
            made = self._map(schema)
        else:
            made = {"type": _PLAIN[schema.type]}
            if schema.type in (Type.INT8, Type.INT16):
                made["connect.type"] = schema.type.value
            made |= _logical(schema)
        made |= _properties(schema)
        return made["type"] if made.keys() == {"type"} else made

    def _map(self, schema: Schema) -> dict[str, Any]:
        assert schema.keys is not None
        assert schema.items is not None
        if schema.keys.type is Type.STRING and not schema.keys.optional:
            return {"type": "map", "values": self.schema(schema.items)}
        entry = struct([Field("key", schema.keys), Field("value", schema.items)], name=f"{NAMESPACE}.MapEntry")
        return {"type": "array", "items": self._record(entry)}

    def _record(self, schema: Schema) -> Any:
        name = schema.name or f"{NAMESPACE}.{DEFAULT_NAME}"
        if _NAME.fullmatch(name) is None:
            raise DataError(f"{name!r} cannot be the name of an Avro record; SetSchemaMetadata gives another")
        bare = replace(schema, optional=False, default=None)
        if self._written.get(name) == bare:
            return name
        self._written[name] = bare
        namespace, _, short = name.rpartition(".")
        made: dict[str, Any] = {"type": "record", "name": short}
        if namespace:
            made["namespace"] = namespace
        made["fields"] = [self._field(each) for each in schema.fields]
        return made | _properties(schema)

    def _field(self, each: Field) -> dict[str, Any]:
        if _NAME.fullmatch(each.name) is None or "." in each.name:
            raise DataError(f"{each.name!r} cannot be the name of an Avro field; ReplaceField renames it")
        made: dict[str, Any] = {"name": each.name, "type": self.schema(each.schema)}
        if each.schema.default is not None:
            default = _default(each.schema)
            if default is not None:
                made["default"] = default
        elif each.schema.optional:
            made["default"] = None
        return made


def _default(schema: Schema) -> Any:
    """Return a default as JSON of Avro: bytes are text with a character for each byte."""
    if schema.type is Type.BYTES:
        raw = schema.default
        return raw.decode("latin-1") if isinstance(raw, bytes) else None
    return value_to_json(replace(schema, default=None), schema.default)


def _logical(schema: Schema) -> dict[str, Any]:
    if schema.name == DECIMAL:
        precision = int(schema.parameters.get(PRECISION_KEY, PRECISION))
        return {"logicalType": "decimal", "precision": precision, "scale": scale_of(schema)}
    return {"logicalType": _LOGICAL[schema.name]} if schema.name in _LOGICAL else {}


def _properties(schema: Schema) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if schema.doc is not None:
        made["connect.doc"] = schema.doc
    if schema.version is not None:
        made["connect.version"] = schema.version
    if schema.parameters:
        made["connect.parameters"] = dict(schema.parameters)
    if schema.name is not None:
        made["connect.name"] = schema.name
    return made


class AvroReader:
    """The schema of an Avro schema, as parsed JSON."""

    def __init__(self) -> None:
        self._named: dict[str, Schema] = {}

    def schema(self, avro: Any) -> Schema:
        """Return the schema; raise ``DataError`` for what Connect cannot have."""
        if isinstance(avro, list):
            return self._union(avro)
        if isinstance(avro, str):
            if avro in _FROM_PLAIN:
                return Schema(_FROM_PLAIN[avro])
            found = self._named.get(avro)
            if found is None:
                raise DataError(f"the Avro type {avro!r} is unknown, or a record that contains itself")
            return found
        return _decorated(self._complex(avro), avro)

    def _complex(self, avro: Mapping[str, Any]) -> Schema:
        match avro["type"]:
            case "record":
                fields = [Field(each["name"], self._field(each)) for each in avro["fields"]]
                name = _full_name(avro)
                made = struct(fields, name=None if name == f"{NAMESPACE}.{DEFAULT_NAME}" else name)
                self._named[name] = _decorated(made, avro)
                return made
            case "array":
                return self._array(avro)
            case "map":
                return mapping(STRING, self.schema(avro["values"]))
            case "enum":
                symbols = {f"{ENUM}.{symbol}": symbol for symbol in avro["symbols"]}
                made = Schema(Type.STRING, parameters={ENUM: _full_name(avro), **symbols})
                self._named[_full_name(avro)] = made
                return made
            case "fixed":
                made = Schema(Type.BYTES)
                self._named[_full_name(avro)] = made
                return _logical_from(avro) or made
            case str(name) if name in _FROM_PLAIN:
                return _logical_from(avro) or Schema(_FROM_PLAIN[name])
            case other:
                return self.schema(other)

    def _array(self, avro: Mapping[str, Any]) -> Schema:
        items = avro["items"]
        if isinstance(items, dict) and _full_name(items) == f"{NAMESPACE}.MapEntry":
            key, value = (self.schema(each["type"]) for each in items["fields"])
            return mapping(key, value)
        return array(self.schema(items))

    def _field(self, avro: Mapping[str, Any]) -> Schema:
        made = self.schema(avro["type"])
        default = avro.get("default")
        is_plain = made.type not in (Type.STRUCT, Type.ARRAY, Type.MAP, Type.BYTES) and made.name not in _LOGICAL
        if default is None or not is_plain:
            return made
        return replace(made, default=default)

    def _union(self, branches: list[Any]) -> Schema:
        others = [each for each in branches if each != "null"]
        if len(others) == 1:
            made = self.schema(others[0])
            return made.as_optional() if len(branches) > 1 else made
        raise DataError(f"a union of {len(others)} Avro types has no schema in Connect")


def _decorated(schema: Schema, avro: Mapping[str, Any]) -> Schema:
    """Return the schema with what the writer has noted about it."""
    if "connect.type" in avro:
        schema = replace(schema, type=Type(avro["connect.type"]))
    return replace(
        schema,
        name=avro.get("connect.name", schema.name),
        version=avro.get("connect.version", schema.version),
        doc=avro.get("connect.doc", schema.doc),
        parameters={**schema.parameters, **avro.get("connect.parameters", {})},
    )


def _logical_from(avro: Mapping[str, Any]) -> Schema | None:
    match avro.get("logicalType"):
        case "decimal":
            return decimal_schema(int(avro.get("scale", 0)), parameters={PRECISION_KEY: str(avro["precision"])})
        case "date":
            return date_schema()
        case "time-millis":
            return time_schema()
        case "timestamp-millis":
            return timestamp_schema()
    return None


def _full_name(avro: Mapping[str, Any]) -> str:
    name = str(avro.get("name", ""))
    return name if "." in name or not avro.get("namespace") else f"{avro['namespace']}.{name}"


def to_avro(schema: Schema, value: Any) -> Any:
    """Return a value as fastavro writes it: maps with keys that are no strings as entries."""
    if value is None:
        return schema.default
    if schema.type is Type.STRUCT:
        return {each.name: to_avro(each.schema, value.get(each.name)) for each in schema.fields}
    if schema.type is Type.ARRAY and schema.items is not None:
        return [to_avro(schema.items, each) for each in value]
    if schema.type is Type.MAP and schema.items is not None and schema.keys is not None:
        if schema.keys.type is Type.STRING and not schema.keys.optional:
            return {key: to_avro(schema.items, each) for key, each in value.items()}
        return [{"key": key, "value": to_avro(schema.items, each)} for key, each in value.items()]
    return value


def from_avro(schema: Schema, value: Any) -> Any:
    """Return what fastavro has read as a value of Connect."""
    if value is None:
        return None
    if schema.type is Type.STRUCT:
        return {each.name: from_avro(each.schema, value.get(each.name)) for each in schema.fields}
    if schema.type is Type.ARRAY and schema.items is not None:
        return [from_avro(schema.items, each) for each in value]
    if schema.type is Type.MAP and schema.items is not None:
        pairs = value.items() if isinstance(value, dict) else ((each["key"], each["value"]) for each in value)
        return {key: from_avro(schema.items, each) for key, each in pairs}
    return value
