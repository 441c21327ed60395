"""What ``produce`` reads: lines by a percent format, JSON objects as ``consume -f json`` prints them, or CSV.

Pure: bytes in, records out. Reading standard input is ``produce.py``'s.
"""

from __future__ import annotations

import csv
import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.ops.failure import Failure
from barnabas.ops.records.format import braces, unescape

VERBS: Final = "kvpdht"
CSV_COLUMNS: Final = ("key", "value", "partition", "timestamp")
HEADER_PREFIX: Final = "header."
HELP: Final = (
    "how a line is read: %%k key, %%v value, %%p partition, %%d timestamp, %%t topic, %%h{%%k=%%v,} headers, with "
    "text between them, such as '%%k\\t%%v'; %%k and %%v take {hex}, {base64}, {json}; with lengths before them there "
    "need be no lines: %%K{big32}%%k%%V{big32}%%v; or json; or csv, whose first line names the columns: key, value, "
    "partition, timestamp, header.NAME (default %%v)"
)


class Input(NamedTuple):
    key: bytes | None = None
    value: bytes | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    topic: str | None = None


def compile_input(text: str) -> Callable[[bytes], Input | None]:
    """The function that reads one line, without its line end; None for a line that is no record."""
    if text in ("json", "json-each-row"):
        return _from_json
    if text == "csv":
        return CsvReader()
    if "%" not in text:
        raise Failure(f"--format {text!r} is neither json nor csv, and no part of a line such as %k or %v is in it")
    return _compile_lines(text)


class CsvReader:
    """Lines of comma-separated values; the first one names the columns. A value is no longer than its line."""

    def __init__(self) -> None:
        self._columns: list[str] | None = None

    def __call__(self, line: bytes) -> Input | None:
        try:
            (cells,) = csv.reader([line.decode()], strict=True)
        except (csv.Error, ValueError) as error:
            raise Failure(f"the line {_shown(line)} is not CSV: {error}") from error
        if self._columns is None:
            self._columns = [name.strip() for name in cells]
            for name in self._columns:
                if name not in CSV_COLUMNS and not name.startswith(HEADER_PREFIX):
                    raise Failure(f"there is no column {name!r}: say {', '.join(CSV_COLUMNS)} or {HEADER_PREFIX}NAME")
            return None
        if len(cells) != len(self._columns):
            raise Failure(f"the line {_shown(line)} has {len(cells)} cells, and the first has {len(self._columns)}")
        found = dict(zip(self._columns, (cell.encode() for cell in cells), strict=True))
        return Input(
            key=found.get("key"),
            value=found.get("value"),
            partition=_number(found.get("partition") or None, line),
            timestamp_ms=_number(found.get("timestamp") or None, line),
            headers=tuple(
                (name.removeprefix(HEADER_PREFIX), cell)
                for name, cell in found.items()
                if name.startswith(HEADER_PREFIX)
            ),
        )


def parse_format(text: str, verbs: str) -> list[tuple[str, str, bytes]]:
    """Each verb with its modifier and the literal text behind it; the text before the first verb has the empty verb."""
    parts: list[tuple[str, str, bytes]] = []
    verb, modifier, literal, position = "", "", "", 0
    while position < len(text):
        if text[position] == "\\":
            character, position = unescape(text, position)
            literal += character
        elif text[position] == "%" and text[position + 1 : position + 2] != "%":
            parts.append((verb, modifier, literal.encode()))
            verb, literal = text[position + 1 : position + 2], ""
            modifier, position = braces(text, position + 2)
            if not verb or verb not in verbs:
                raise Failure(f"%{verb} cannot be read; a line is made of %k, %v, %p, %d, %h and %t")
        else:
            literal += text[position]
            position += 2 if text[position] == "%" else 1
    parts.append((verb, modifier, literal.encode()))
    return parts


def piece_of(verb: str, modifier: str) -> Callable[[bytes], bytes]:
    """How the text of a verb becomes bytes."""
    read = _MODIFIERS.get(modifier)
    if read is None:
        raise Failure(f"%{verb}{{{modifier}}}: say {', '.join(filter(None, _MODIFIERS))}")
    return lambda data: _decoded(read, data)


def _decoded(read: Callable[[bytes], bytes], data: bytes) -> bytes:
    try:
        return read(data)
    except ValueError as error:
        raise Failure(f"{_shown(data)} cannot be read: {error}") from error


_MODIFIERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": bytes,
    "hex": lambda data: bytes.fromhex(data.decode()),
    "base64": lambda data: b64decode(data, validate=True),
    "json": lambda data: json.dumps(json.loads(data), ensure_ascii=False).encode(),
}


def _compile_lines(text: str) -> Callable[[bytes], Input | None]:
    parts = parse_format(text.removesuffix("\\n"), VERBS)
    if [verb for verb, _, literal in parts[1:-1] if not literal]:
        raise Failure(f"{text!r}: something must stand between two verbs, or nobody knows where the first one ends")
    readers = {verb: piece_of(verb, modifier) for verb, modifier, _ in parts if verb in ("k", "v")}
    headers = next((_header_reader(modifier) for verb, modifier, _ in parts if verb == "h"), None)

    def read(line: bytes) -> Input:
        found = _split(line, [(verb, literal) for verb, _, literal in parts], text)
        return Input(
            key=readers["k"](found["k"]) if "k" in found else None,
            value=readers["v"](found["v"]) if "v" in found else None,
            partition=_number(found.get("p"), line),
            timestamp_ms=_number(found.get("d"), line),
            headers=headers(found["h"]) if headers is not None else (),
            topic=found["t"].decode() if "t" in found else None,
        )

    return read


def _header_reader(modifier: str) -> Callable[[bytes], tuple[tuple[str, bytes | None], ...]]:
    """``%h{%k=%v,}``: how one header is written; they come one after the other."""
    parts = parse_format(modifier or "%k=%v,", "kv")
    if [verb for verb, _, _ in parts] != ["", "k", "v"] or not parts[1][2] or not parts[2][2]:
        raise Failure(f"%h{{{modifier}}}: say how one header is written, such as %h{{%k=%v,}}")
    between, behind = parts[1][2], parts[2][2]

    def read(data: bytes) -> tuple[tuple[str, bytes | None], ...]:
        found = []
        for text in data.removesuffix(behind).split(behind) if data else ():
            name, separator, value = text.partition(between)
            if not separator:
                raise Failure(f"the header {_shown(text)} has no {between.decode()!r}")
            found.append((name.decode(), value))
        return tuple(found)

    return read


def _split(line: bytes, parts: list[tuple[str, bytes]], text: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    position = 0
    for index, (verb, literal) in enumerate(parts):
        if not verb:
            if not line.startswith(literal):
                raise Failure(f"the line {_shown(line)} does not begin as {text!r} says")
            position = len(literal)
            continue
        is_last = index == len(parts) - 1
        end = len(line) - len(literal) if is_last else line.find(literal, position)
        if end < position or not line.startswith(literal, end):
            raise Failure(f"the line {_shown(line)} does not fit {text!r}")
        found[verb] = line[position:end]
        position = end + len(literal)
    return found


def _number(data: bytes | None, line: bytes) -> int | None:
    if data is None:
        return None
    try:
        return int(data)
    except ValueError:
        raise Failure(f"the line {_shown(line)} has {_shown(data)} where a number should be") from None


def _from_json(line: bytes) -> Input:
    """The partition that the record had elsewhere is not asked for: the key decides again."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict):
            raise Failure(f"the line {_shown(line)} is no JSON object")
        return Input(
            key=_bytes(entry, "key"),
            value=_bytes(entry, "value"),
            timestamp_ms=entry.get("timestamp"),
            headers=tuple((header["key"], _bytes(header, "value")) for header in entry.get("headers") or ()),
        )
    except (ValueError, NotBase64, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"the line {_shown(line)} is not a record in JSON: {error}") from error


def _bytes(entry: dict[str, object], name: str) -> bytes | None:
    encoded = entry.get(f"{name}_base64")
    if isinstance(encoded, str):
        return b64decode(encoded, validate=True)
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, str) and entry.get(f"{name}_format") in ("hex", "base64"):  # as `consume --decode` wrote it
        return _MODIFIERS[str(entry[f"{name}_format"])](value.encode())
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


def _shown(data: bytes) -> str:
    text = data.decode(errors="replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
