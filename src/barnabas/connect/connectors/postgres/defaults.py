"""Default values of columns, as Debezium puts them into schemas: constants, and a fixed value for functions. Pure."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.connect.errors import DataError
from barnabas.connect.schemas import DECIMAL, Schema, Type, scale_of

_LITERAL: Final = re.compile(r"'([^']*(?:''[^']*)*)'")
_FUNCTION: Final = re.compile(r"[(]?[A-Za-z0-9_.]+\(.*\)", re.DOTALL)
_CLOCKS: Final = frozenset(("current_timestamp", "current_time", "current_date", "localtime", "localtimestamp"))
# What stands in the schema if the server computes the value.
_COMPUTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bpchar", "varchar", "text", "xml"), ""),
    **dict.fromkeys(("int2", "int4", "int8", "float4", "float8"), "0"),
    **dict.fromkeys(("json", "jsonb"), "{}"),
    "bit": "00",
    "varbit": "0",
    "bool": "f",
    "numeric": "0.0",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "interval": "",
}
_BOOLEANS: Final = {"true": "t", "false": "f"}


def default_value(
    type_name: str, kind: str, expression: str | None, schema: Schema, parse: Callable[[str], Any]
) -> Any:
    """Return the value of a column's default expression, or None if there is none or a schema cannot have it."""
    if expression is None or expression.startswith("NULL::") or schema.type in (Type.STRUCT, Type.ARRAY, Type.MAP):
        return None
    text = _enum_text(type_name, expression) if kind == "e" else _text(type_name, expression)
    if text is None or (type_name == "interval" and not text):
        return None
    try:
        value = parse(text)
    except (ValueError, ArithmeticError, DataError):
        return None  # an expression that only the server can evaluate
    if schema.name == DECIMAL and isinstance(value, decimal.Decimal):
        return value.quantize(decimal.Decimal(1).scaleb(-scale_of(schema)), decimal.ROUND_HALF_EVEN)
    return value


def _text(type_name: str, expression: str) -> str | None:
    """Return a default as the text that the server would send for the value."""
    if type_name not in _COMPUTED:
        return None
    if _FUNCTION.match(expression) or expression.lower() in _CLOCKS:
        return _COMPUTED[type_name]
    match = _LITERAL.search(expression)
    text = expression if match is None else match[1].replace("''", "'")
    return _BOOLEANS.get(text, text) if type_name == "bool" else text


def _enum_text(type_name: str, expression: str) -> str | None:
    literal, found, cast = expression.rpartition("::")
    is_literal = found and literal.startswith("'") and literal.endswith("'")
    return literal[1:-1] if is_literal and cast.rpartition(".")[2].strip('"') == type_name else None
