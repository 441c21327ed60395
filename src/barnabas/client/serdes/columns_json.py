"""JSON as Arrow columns: the types that a JSON Schema asks for. Values of another type make a row malformed.

Objects are structs, or maps if they name no properties; what may be anything, and what refers to itself, is JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from barnabas.client.serdes.columns import ColumnDecoder, ColumnReader
from barnabas.client.serdes.columns_rows import RowDecoder
from barnabas.client.serdes.registry import Registry

Convert: TypeAlias = Callable[[Any], Any]
DEPTH_MAX: Final = 64
LONG_MAX: Final = (1 << 63) - 1
_REFUSED: Final = (ValueError, TypeError, RecursionError)


class JsonReader(ColumnReader):
    kind = "json"

    def __init__(self, text: str) -> None:
        self._text = text
        self.type = _Types(json.loads(text)).top()[0]

    async def decoder(self, registry: Registry, schema_id: int) -> ColumnDecoder:
        kind, convert = _Types(json.loads(self._text)).top()
        return RowDecoder(kind, lambda data: convert(json.loads(data)), _REFUSED)


class _Types:
    """Arrow types of schemas, and what checks and converts their values."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def top(self) -> tuple[Any, Convert]:
        return self._of(self._root, ())

    def _of(self, schema: Any, within: tuple[str, ...]) -> tuple[Any, Convert]:
        import pyarrow as pa

        if not isinstance(schema, dict) or len(within) > DEPTH_MAX:
            return pa.string(), _text
        if isinstance(name := schema.get("$ref"), str):
            target = self._target(name)
            return (pa.string(), _text) if name in within or target is None else self._of(target, (*within, name))
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else list(kinds or ())
        real = [kind for kind in kinds if kind != "null"]
        for word in ("oneOf", "anyOf"):
            branches = [each for each in schema.get(word) or () if each != {"type": "null"}]
            if len(branches) == 1 and not real:
                kind, convert = self._of(branches[0], (*within, ""))
                return kind, _optional(convert)
        kind, convert = self._typed(schema, set(real), within)
        return kind, _optional(convert)

    def _typed(self, schema: dict[str, Any], kinds: set[str], within: tuple[str, ...]) -> tuple[Any, Convert]:
        import pyarrow as pa

        if kinds == {"integer"}:
            return pa.int64(), _integer
        if kinds and kinds <= {"integer", "number"}:
            return pa.float64(), _number
        if kinds == {"boolean"}:
            return pa.bool_(), lambda value: _checked(value, bool)
        if kinds == {"string"}:
            return pa.string(), lambda value: _checked(value, str)
        if kinds == {"array"} and isinstance(schema.get("items"), dict):
            kind, convert = self._of(schema["items"], (*within, ""))
            return pa.list_(pa.field("element", kind)), lambda value: [convert(each) for each in _checked(value, list)]
        if kinds == {"object"} and schema.get("properties"):
            return self._object(schema["properties"], set(schema.get("required") or ()), within)
        if kinds == {"object"} and isinstance(schema.get("additionalProperties"), dict):
            kind, convert = self._of(schema["additionalProperties"], (*within, ""))
            return pa.map_(pa.string(), kind), lambda value: [
                (name, convert(each)) for name, each in _checked(value, dict).items()
            ]
        return pa.string(), _text

    def _object(self, properties: dict[str, Any], required: set[str], within: tuple[str, ...]) -> tuple[Any, Convert]:
        import pyarrow as pa

        found = {name: self._of(each, (*within, "")) for name, each in properties.items()}

        def convert(value: Any) -> Any:
            if missing := required - _checked(value, dict).keys():
                raise ValueError(f"{', '.join(sorted(missing))} is required and missing")
            return {name: each[1](value[name]) for name, each in found.items() if name in value}

        return pa.struct([pa.field(name, kind) for name, (kind, _) in found.items()]), convert

    def _target(self, name: str) -> Any:
        """What a reference within the schema refers to; others are not followed."""
        found = self._root
        if not name.startswith("#"):
            return None
        for part in name[1:].split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found


def _optional(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{value!r:.40} is not of the type {kind.__name__}")  # noqa: TRY004 - of data, not of code
    return value


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -LONG_MAX - 1 <= value <= LONG_MAX:
        raise ValueError(f"{value!r:.40} is not an integer of 64 bits")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r:.40} is not a number")  # noqa: TRY004
    return float(value)


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
