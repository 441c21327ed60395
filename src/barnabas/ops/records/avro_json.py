"""Avro's values as JSON, and JSON as Avro's values: what ``consume`` shows of a record and ``produce`` reads of a line.

JSON has fewer types than Avro, so the schema decides. Bytes are text of the characters 0 to 255, as Avro has it; dates
and times are written as ISO 8601 does, decimals as text. A branch of a union may be named (``{"string": "tea"}``), as
Confluent's tools want it, and need not be. Pure; ``schemas.py`` calls it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias

Named: TypeAlias = Mapping[str, Any]

NUMBERS: Final = ("int", "long", "float", "double")
TEXTS: Final = ("string", "bytes", "fixed", "enum")
DECIMAL: Final = "decimal"
_MOMENTS: Final[dict[str, Callable[[str], Any]]] = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
    "timestamp-millis": datetime.fromisoformat,
    "timestamp-micros": datetime.fromisoformat,
    "local-timestamp-millis": datetime.fromisoformat,
    "local-timestamp-micros": datetime.fromisoformat,
}


def shown(content: Any, text_of: Callable[[bytes], str] = lambda data: data.decode("latin-1")) -> Any:
    """What JSON can hold; ``text_of`` says how bytes are written."""
    if isinstance(content, bytes | bytearray | memoryview):
        return text_of(bytes(content))
    if isinstance(content, Mapping):
        return {_name(key, text_of): shown(value, text_of) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [shown(value, text_of) for value in content]
    if isinstance(content, float):
        return content if math.isfinite(content) else str(content)
    if isinstance(content, date | time):
        return content.isoformat()
    if content is None or isinstance(content, str | int):
        return content
    return str(content)  # decimals, UUIDs


def _name(key: Any, text_of: Callable[[bytes], str]) -> str:
    said = shown(key, text_of)
    return said if isinstance(said, str) else str(said)


def meant(said: Any, schema: Any, named: Named) -> Any:
    """The value of a schema that JSON means; ValueError or TypeError if it cannot be one."""
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    if isinstance(schema, list):
        return _of_union(said, schema, named)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return meant(said, kind, named)
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if kind == "record":
        return _of_record(said, schema, named)
    if kind == "array" and isinstance(said, list):
        return [meant(each, schema["items"], named) for each in said]
    if kind == "map" and isinstance(said, dict):
        return {name: meant(each, schema["values"], named) for name, each in said.items()}
    if logical == DECIMAL and isinstance(said, str | int | float):
        return Decimal(str(said))
    if logical in _MOMENTS and isinstance(said, str):
        return _MOMENTS[logical](said)
    if kind in ("bytes", "fixed") and isinstance(said, str):
        return said.encode("latin-1")
    if kind in ("float", "double") and isinstance(said, str):
        return float(said)
    return said


def _of_record(said: Any, schema: dict[str, Any], named: Named) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise TypeError(f"{schema['name']} is an object of fields, and this is {said!r}")
    fields = {field["name"]: field["type"] for field in schema["fields"]}
    for name in said:
        if name not in fields:
            raise ValueError(f"{schema['name']} has no field {name!r}; it has {', '.join(fields) or 'none'}")
    return {name: meant(value, fields[name], named) for name, value in said.items()}


def _of_union(said: Any, branches: list[Any], named: Named) -> Any:
    if isinstance(said, dict) and len(said) == 1:
        ((name, value),) = said.items()
        for branch in branches:
            known = _names(branch, named)
            if name in known:
                inner = meant(value, branch, named)
                return (known[0], inner) if _kind(branch, named) == "record" else inner
    for branch in branches:
        if _fits(said, branch, named):
            return meant(said, branch, named)
    raise ValueError(f"{said!r} is none of {', '.join(_names(branch, named)[0] for branch in branches)}")


def _definition(branch: Any, named: Named) -> Any:
    return named.get(branch, branch) if isinstance(branch, str) else branch


def _kind(branch: Any, named: Named) -> str:
    found = _definition(branch, named)
    return str(found["type"]) if isinstance(found, dict) else str(found)


def _names(branch: Any, named: Named) -> list[str]:
    """How a branch may be called: by its full name, its own name, or its type."""
    found = _definition(branch, named)
    if isinstance(found, dict) and "name" in found:
        return [found["name"], str(found["name"]).rpartition(".")[2]]
    return [_kind(branch, named)]


def _fits(said: Any, branch: Any, named: Named) -> bool:
    kind, found = _kind(branch, named), _definition(branch, named)
    logical = found.get("logicalType") if isinstance(found, dict) else None
    if said is None or isinstance(said, bool):
        return kind == ("null" if said is None else "boolean")
    if isinstance(said, int | float):
        return (kind in NUMBERS and (isinstance(said, int) or kind in ("float", "double"))) or logical == DECIMAL
    if isinstance(said, str):
        if kind == "enum":
            return said in found["symbols"]
        return kind in TEXTS or logical in _MOMENTS
    if isinstance(said, list):
        return kind == "array"
    if kind != "record":
        return kind == "map"
    known = {field["name"]: "default" in field for field in found["fields"]}
    return all(name in known for name in said) and all(name in said for name, free in known.items() if not free)
