"""Records as the console shows them: decoded keys and values with the reason for the decoding, cut to a size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.ops.records.format import Decoded

if TYPE_CHECKING:
    from barnabas.ops.records.format import Line

PREVIEW_CHARACTERS: Final = 2000  # of a key or value in a list
WHOLE_CHARACTERS: Final = 1_000_000  # of a record that is looked at alone
HEADERS_MAX: Final = 100
HEADER_CHARACTERS: Final = 1000


def row_of(line: Line, *, characters_max: int = PREVIEW_CHARACTERS) -> dict[str, Any]:
    return {
        "partition": line.partition,
        "offset": line.offset,
        "timestamp": line.timestamp_ms,
        "key": _side(line.key, characters_max),
        "value": _side(line.value, characters_max),
        "headers": [[name[:HEADER_CHARACTERS], _header(value)] for name, value in line.headers[:HEADERS_MAX]],
    }


def _side(data: bytes | None, characters_max: int) -> dict[str, Any] | None:
    if data is None:
        return None
    text = data.decode(errors="replace")
    found = {"text": text[:characters_max], "cut": len(text) > characters_max, "bytes": len(data)}
    if not isinstance(data, Decoded):
        return {**found, "form": "string", "schema": None, "error": None, "why": ""}
    return {
        **found,
        "bytes": data.size_bytes,
        "form": data.form,
        "schema": data.schema_id,
        "error": data.error,
        "why": reason(data),
    }


def _header(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")[:HEADER_CHARACTERS]


def reason(data: Decoded) -> str:
    """Why the bytes are shown in this form."""
    if data.form in ("avro", "proto") or (data.form == "json" and data.schema_id is not None):
        return f"begins with byte 0 and the id of schema {data.schema_id}, which the registry knows"
    if data.form == "json":
        return "UTF-8 text that begins with { or [ and is valid JSON"
    if data.form == "string":
        return "UTF-8 text of printable characters that is not a JSON object or array"
    if data.form == "msgpack":
        return "a MessagePack map or array from the first byte to the last"
    if data.form == "hex":
        return "neither printable UTF-8, nor MessagePack, nor data with a known schema: the bytes in hexadecimal"
    if data.form == "base64":
        return "shown in base64, as asked"
    return "not decoded"
