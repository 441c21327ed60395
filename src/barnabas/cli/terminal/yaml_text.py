"""Values as YAML: maps, lists and plain values, with every text quoted that anybody might take for something else.

JSON's quoted strings are YAML's, so nothing has to be invented for them. Only ``output.py`` calls this; reading YAML is
not offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

INDENT: Final = "  "
# Texts that every reader of YAML takes for text; the words of its old version for true, false and null are not.
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./@-]*")
_TAKEN: Final = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"}


def yaml_text(value: Any) -> str:
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _entry(f"{_scalar(str(name))}:", inner)
    elif _is_list(value) and value:
        for inner in value:
            first, *rest = _lines(inner)
            yield f"- {first}"
            yield from (INDENT + line for line in rest)
    else:
        yield _scalar(value)


def _entry(name: str, value: Any) -> Iterator[str]:
    if value and (isinstance(value, Mapping) or _is_list(value)):
        yield name
        yield from (INDENT + line for line in _lines(value))
    else:
        yield f"{name} {_scalar(value)}"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{}"
    if _is_list(value):
        return "[]"
    text = str(value)
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _TAKEN
    return text if is_plain else json.dumps(text, ensure_ascii=False)
