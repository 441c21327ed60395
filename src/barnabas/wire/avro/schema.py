"""Avro schemas as the decoder's plan sees them: named types looked up, logical types that count, defaults as data.

Schemas come parsed, with full names (as fastavro's ``parse_schema`` leaves them); nothing is parsed here.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.model.errors import BarnabasError

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
DECIMAL_DIGITS_MAX: Final = 38
INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
DAY_MS: Final = 86_400_000
MEMBERS_MAX: Final = 1000  # fields of a record, branches of a union
DEPTH_MAX: Final = 64  # levels of nesting


class UnsupportedSchema(BarnabasError, ValueError):
    """A schema whose data has no Arrow type, or data of one schema that cannot be read as another."""


class Logical(NamedTuple):
    """A number's logical type: which values are allowed, and what they are multiplied by."""

    low: int
    high: int
    scale: int = 1


INT: Final = Logical(-INT_MAX - 1, INT_MAX)
LONG: Final = Logical(-LONG_MAX - 1, LONG_MAX)
_MILLIS: Final = Logical(-(LONG_MAX // 1000), LONG_MAX // 1000, 1000)
LOGICAL: Final[Mapping[tuple[str, str], Logical]] = {
    ("int", "date"): INT,
    ("int", "time-millis"): Logical(0, DAY_MS - 1),
    ("long", "time-micros"): Logical(0, 1000 * DAY_MS - 1),
    ("long", "timestamp-millis"): _MILLIS,
    ("long", "timestamp-micros"): LONG,
    ("long", "timestamp-nanos"): LONG,
    ("long", "local-timestamp-millis"): _MILLIS,
    ("long", "local-timestamp-micros"): LONG,
    ("long", "local-timestamp-nanos"): LONG,
}


class Names:
    """The types of a schema by their full names; ``named`` has those that it refers to and other schemas define."""

    def __init__(self, schema: Any, named: Mapping[str, Any] | None = None) -> None:
        self._known: dict[str, Any] = dict(named or {})
        self._collect(schema, 0)

    def definition(self, schema: Any) -> Any:
        """A list for a union; else a dict, whose ``type`` is a word."""
        while True:
            if isinstance(schema, str):
                if schema in PRIMITIVES:
                    return {"type": schema}
                if schema not in self._known:
                    raise UnsupportedSchema(f"the schema uses the type {schema!r}, which is not defined")
                schema = self._known[schema]
            elif isinstance(schema, dict) and not (
                isinstance(schema.get("type"), str)
                and (schema["type"] in PRIMITIVES | NAMED or schema["type"] in ("array", "map"))
            ):
                schema = schema.get("type")
            elif isinstance(schema, (dict, list)):
                return schema
            else:
                raise UnsupportedSchema(f"{schema!r} is not an Avro schema")

    def _collect(self, schema: Any, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise UnsupportedSchema(f"the schema is nested more than {DEPTH_MAX} levels deep")
        if isinstance(schema, list):
            for branch in schema:
                self._collect(branch, depth + 1)
        elif isinstance(schema, dict):
            kind = schema.get("type")
            if isinstance(kind, str) and kind in NAMED:
                self._known.setdefault(str(schema.get("name")), schema)
            for field in schema.get("fields") or () if kind in ("record", "error") else ():
                self._collect(field["type"], depth + 1)
            for inner in (schema.get("items"), schema.get("values"), None if isinstance(kind, str) else kind):
                if inner is not None:
                    self._collect(inner, depth + 1)


def logical(schema: Mapping[str, Any]) -> str:
    """The logical type, or nothing if there is none that is known and valid: then the type below it counts."""
    name, kind = str(schema.get("logicalType") or ""), schema["type"]
    if (kind, name) in LOGICAL or (name == "uuid" and (kind == "string" or schema.get("size") == 16)):
        return name
    if name == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = schema.get("precision", 0), schema.get("scale", 0)
        is_number = isinstance(precision, int) and isinstance(scale, int)
        return name if is_number and 0 < precision <= DECIMAL_DIGITS_MAX and 0 <= scale <= precision else ""
    return ""


def names_of(schema: Mapping[str, Any]) -> set[str]:
    """A named type's name and aliases, without namespaces."""
    return {str(name).rpartition(".")[2] for name in (schema.get("name", ""), *(schema.get("aliases") or ()))}


def encode_default(schema: Any, value: Any, names: Names) -> bytes:
    """The default of a field, which a schema has as JSON, as data of the field's type."""
    try:
        return _encode(schema, value, names)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, struct.error, OverflowError) as error:
        raise UnsupportedSchema(f"{value!r} is no default of the type {schema!r}: {error}") from error


def _encode(schema: Any, value: Any, names: Names) -> bytes:
    found = names.definition(schema)
    if isinstance(found, list):  # a default is of the first branch; newer schemas may mean another one
        return _encode_union(found, value, names)
    kind = found["type"]
    if kind == "null" and value is None:
        return b""
    if kind == "boolean" and isinstance(value, bool):
        return bytes([value])
    if kind in ("int", "long") and isinstance(value, int) and not isinstance(value, bool):
        return varint(value)
    if kind in ("float", "double"):
        return struct.pack("<f" if kind == "float" else "<d", float(value))
    if kind == "string" and isinstance(value, str):
        return varint(len(value.encode())) + value.encode()
    if kind in ("bytes", "fixed") and isinstance(value, str):
        plain = value.encode("latin-1")
        return plain if kind == "fixed" else varint(len(plain)) + plain
    if kind == "enum":
        return varint(list(found["symbols"]).index(value))
    if kind == "array" and isinstance(value, list):
        items = b"".join(_encode(found["items"], each, names) for each in value)
        return (varint(len(value)) + items if value else b"") + b"\0"
    if kind == "map":
        pairs = b"".join(
            _encode("string", key, names) + _encode(found["values"], each, names) for key, each in value.items()
        )
        return (varint(len(value)) + pairs if value else b"") + b"\0"
    if kind in ("record", "error") and isinstance(value, dict):
        return b"".join(
            _encode(field["type"], value[field["name"]] if field["name"] in value else field["default"], names)
            for field in found["fields"]
        )
    raise ValueError(f"it is not a {kind}")


def _encode_union(branches: list[Any], value: Any, names: Names) -> bytes:
    for index, branch in enumerate(branches):
        try:
            return varint(index) + _encode(branch, value, names)
        except (KeyError, TypeError, ValueError, AttributeError, struct.error, OverflowError):
            continue
    raise ValueError("no branch of the union has such values")


def varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    if not 0 <= raw < 1 << 64:
        raise OverflowError(f"{value} has more than 64 bits")
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])
