"""Formats of records on the command line: percent verbs as rpk has them, JSON, or just the value.

``compile_output`` makes the function that ``consume`` and ``produce`` print with. What ``produce`` reads is parsed in
``record_input.py``, which shares the escapes.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.ops.failure import Failure
from barnabas.ops.records.unpacking import compile_unpacking

VALUE_LINES: Final = "%v\n"
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
HELP: Final = (
    "percent format: %%t topic, %%p partition, %%o offset, %%d timestamp, %%k key, %%v value, %%h{%%k=%%v } headers, "
    "%%T %%K %%V lengths, %%H header count, %%i running number, %%e leader epoch, %%x producer id, %%y producer epoch, "
    "%%[ log start offset, %%| last stable offset, %%] high watermark, %%%% a percent sign; %%k %%v take {hex}, "
    "{base64}, {base64raw}, {json}, {unpack[>Iq]}; numbers take {hex64}, {big64}, {little32}, {byte}, {bool}, ...; "
    "%%d takes {strftime[%%F %%T]}; \\n \\t \\r \\0 \\xHH"
)


class Decoded(bytes):
    """What a key or value says, as text, instead of its bytes; or those, and why they say nothing. See ``decoding``."""

    form: str
    content: object  # what JSON can hold
    schema_id: int | None
    size_bytes: int  # of what is in the record
    error: str | None

    @classmethod
    def of(cls, form: str, content: object, text: bytes, raw: bytes, *, schema_id: int | None = None) -> Decoded:
        made = cls(text)
        made.form, made.content, made.schema_id = form, content, schema_id
        made.size_bytes, made.error = len(raw), None
        return made

    @classmethod
    def failed(cls, raw: bytes, error: str) -> Decoded:
        made = cls.of("", None, raw, raw)
        made.error = error
        return made


class Line(NamedTuple):
    """What a format may speak of."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    number: int = 1
    leader_epoch: int = -1  # these, and the next five, only if they were asked for
    producer_id: int = -1
    producer_epoch: int = -1
    log_start_offset: int = -1
    last_stable_offset: int = -1
    high_watermark: int = -1


Piece: TypeAlias = Callable[[Any], bytes]

_TEXTS: Final[dict[str, Callable[[Line], bytes]]] = {
    "t": lambda line: line.topic.encode(),
    "k": lambda line: line.key or b"",
    "v": lambda line: line.value or b"",
}
_NUMBERS: Final[dict[str, Callable[[Line], int]]] = {
    "p": lambda line: line.partition,
    "o": lambda line: line.offset,
    "d": lambda line: line.timestamp_ms,
    "T": lambda line: len(line.topic.encode()),
    "K": lambda line: len(line.key or b""),
    "V": lambda line: len(line.value or b""),
    "H": lambda line: len(line.headers),
    "i": lambda line: line.number,
    "e": lambda line: line.leader_epoch,
    "x": lambda line: line.producer_id,
    "y": lambda line: line.producer_epoch,
    "[": lambda line: line.log_start_offset,
    "|": lambda line: line.last_stable_offset,
    "]": lambda line: line.high_watermark,
}
OF_BATCHES: Final = frozenset("exy[|]")  # what no record knows of itself
_TEXT_MODIFIERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": bytes,
    "hex": lambda data: data.hex().encode(),
    "base64": b64encode,
    "base64raw": lambda data: b64encode(data).rstrip(b"="),
    "json": lambda data: json.dumps(data.decode(errors="replace"), ensure_ascii=False).encode(),
}
_HEADER_TEXTS: Final[dict[str, Callable[[tuple[str, bytes | None]], bytes]]] = {
    "k": lambda header: header[0].encode(),
    "v": lambda header: header[1] or b"",
}
_HEADER_NUMBERS: Final[dict[str, Callable[[tuple[str, bytes | None]], int]]] = {
    "K": lambda header: len(header[0].encode()),
    "V": lambda header: len(header[1] or b""),
}


def compile_output(text: str) -> Callable[[Line], bytes]:
    """From ``text``, ``json`` or a percent format to the bytes of a record."""
    if text in _NAMED:
        return _NAMED[text]
    pieces = _pieces(VALUE_LINES if text == "text" else text, _TEXTS, _NUMBERS)
    if len(pieces) == 1:
        return pieces[0]
    return lambda line: b"".join([piece(line) for piece in pieces])


def needs_batches(text: str) -> bool:
    """Whether a format speaks of what only the batches around records say."""
    return text not in _NAMED and any(verb in OF_BATCHES for verb in re.findall(r"%(.)", text.replace("%%", "")))


def shows_errors(text: str) -> bool:
    """Whether a format has a place for what could not be decoded."""
    return text in _NAMED


def from_kcat(text: str) -> str:
    """The same format as kcat has it, with our verbs: %s is the value, %S its length, %T the timestamp."""
    if text in _NAMED:
        return text
    written = "%v\\n" if text == "text" else text
    return re.sub("%(.)", lambda found: _KCAT.get(found[1], found[0]), written)


def _entry(line: Line) -> dict[str, object]:
    entry: dict[str, object] = {
        "topic": line.topic,
        "partition": line.partition,
        "offset": line.offset,
        "timestamp": line.timestamp_ms,
        **_readable("key", line.key),
        **_readable("value", line.value),
    }
    if line.headers:
        entry["headers"] = [{"key": name, **_readable("value", value)} for name, value in line.headers]
    return entry


def _json(line: Line) -> bytes:
    return _written(_entry(line))


def _written(entry: dict[str, object], *, indent: int | None = None) -> bytes:
    try:
        return json.dumps(entry, ensure_ascii=False, indent=indent).encode() + b"\n"
    except UnicodeEncodeError:  # half a character, which JSON can write and UTF-8 cannot
        return json.dumps(entry, indent=indent).encode() + b"\n"


def _pretty(line: Line) -> bytes:
    """For people: indented, and a value that is JSON as what it says."""
    entry = _entry(line)
    for name in ("key", "value"):
        text = entry.get(name)
        if isinstance(text, str) and text[:1] in ("{", "["):
            try:
                entry[name] = json.loads(text)
            except ValueError:
                continue
    return _written(entry, indent=2)


def _meta(line: Line) -> bytes:
    """Everything but what the record says."""
    entry = _entry(line)
    for name in ("key", "value"):
        entry.pop(name, None)
        entry.pop(f"{name}_base64", None)
        data = getattr(line, name)
        size = data.size_bytes if isinstance(data, Decoded) else len(data or b"")
        entry[f"{name}_size"] = None if data is None else size
    entry["headers"] = [name for name, _ in line.headers]
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


_NAMED: Final[dict[str, Callable[[Line], bytes]]] = {"json": _json, "pretty": _pretty, "meta": _meta}
_KCAT: Final = {"s": "%v", "S": "%V", "R": "%V{big32}", "T": "%d", "h": "%h{%k=%v,}"}


def _readable(name: str, data: bytes | None) -> dict[str, object]:
    """Bytes that are no text keep their meaning as base64 under another name."""
    if isinstance(data, Decoded):
        return _decoded(name, data)
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        assert data is not None
        return {f"{name}_base64": b64encode(data).decode()}


def _decoded(name: str, data: Decoded) -> dict[str, object]:
    """What was made of the bytes, and how."""
    entry: dict[str, object] = {name: data.content, f"{name}_format": data.form}
    if not data.form:
        entry = _readable(name, bytes(data))
    if data.schema_id is not None:
        entry[f"{name}_schema_id"] = data.schema_id
    if data.error is not None:
        entry[f"{name}_error"] = data.error
    return entry


def _pieces(text: str, texts: dict[str, Any], numbers: dict[str, Any]) -> list[Piece]:
    pieces: list[Piece] = []
    literal = ""
    position = 0
    while position < len(text):
        if text[position] == "\\":
            character, position = unescape(text, position)
            literal += character
            continue
        if text[position] != "%":
            literal += text[position]
            position += 1
            continue
        verb = text[position + 1 : position + 2]
        if verb == "%":
            literal += "%"
            position += 2
            continue
        modifier, position = braces(text, position + 2)
        if literal:
            pieces.append(_constant(literal))
            literal = ""
        pieces.append(_piece(verb, modifier, texts, numbers))
    if literal or not pieces:
        pieces.append(_constant(literal))
    return pieces


def _piece(verb: str, modifier: str, texts: dict[str, Any], numbers: dict[str, Any]) -> Piece:
    if verb in texts:
        get, change = texts[verb], _TEXT_MODIFIERS.get(modifier)
        if modifier.startswith("unpack[") and modifier.endswith("]"):
            change = compile_unpacking(modifier[len("unpack[") : -1])
        if change is None:
            raise Failure(f"%{verb}{{{modifier}}}: say {', '.join(filter(None, _TEXT_MODIFIERS))} or unpack[...]")
        return get if not modifier else lambda line: change(get(line))
    if verb in numbers:
        number, write = numbers[verb], number_writer(verb, modifier)
        return lambda line: write(number(line))
    if verb == "h" and texts is _TEXTS:
        inner = _pieces(modifier, _HEADER_TEXTS, _HEADER_NUMBERS)
        return lambda line: b"".join([piece(header) for header in line.headers for piece in inner])
    raise Failure(f"%{verb} means nothing here; `barnabas consume --help` lists what does")


def number_writer(verb: str, modifier: str) -> Callable[[int], bytes]:
    if not modifier or modifier == "ascii":
        return lambda number: b"%d" % number
    if modifier == "bool":
        return lambda number: b"true" if number else b"false"
    if modifier == "byte":
        modifier = "big8"
    if modifier == "hex4":
        return lambda number: b"%x" % (number & 15)
    if verb == "d" and modifier.startswith("strftime[") and modifier.endswith("]"):
        pattern = modifier[len("strftime[") : -1]
        return lambda number: datetime.fromtimestamp(number / 1000, UTC).strftime(pattern).encode()
    for name in ("hex", "big", "little"):
        bits = modifier.removeprefix(name)
        if bits != modifier and bits in ("8", "16", "32", "64"):
            size = int(bits) // 8
            mask = (1 << 8 * size) - 1
            if name == "hex":
                return lambda number: b"%0*x" % (2 * size, number & mask)
            order = "big" if name == "big" else "little"
            return lambda number: (number & mask).to_bytes(size, order)  # type: ignore[arg-type]
    raise Failure(f"%{verb}{{{modifier}}}: say ascii, bool, byte, hex4, hex64, big64, little64 (or 8, 16, 32)")


def unescape(text: str, position: int) -> tuple[str, int]:
    """The character of the escape at ``position``, and where it ends."""
    following = text[position + 1 : position + 2]
    if following == "x":
        try:
            return chr(int(text[position + 2 : position + 4], 16)), position + 4
        except ValueError:
            raise Failure(f"{text[position : position + 4]!r}: say \\x and two hexadecimal digits") from None
    return ESCAPES.get(following, "\\" + following), position + 1 + len(following)


def braces(text: str, position: int) -> tuple[str, int]:
    """What stands in braces at ``position``, which may hold braces itself, and where it ends."""
    if text[position : position + 1] != "{":
        return "", position
    depth = 0
    for index in range(position, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[position + 1 : index], index + 1
    raise Failure(f"{text!r}: a brace is not closed")


def _constant(text: str) -> Piece:
    data = text.encode(errors="surrogateescape")
    return lambda _: data
