"""Input whose format says how long things are: ``%K{big32}%k%V{big32}%v`` is a stream of records without line ends.

A verb in capitals is the length of its small twin, which comes after it; lengths are written as ``consume`` prints them
with the same format. ``record_input.py`` reads formats without lengths, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from barnabas.cli.records.record_input import Input, piece_of
from barnabas.ops.failure import Failure

LENGTHS: Final = {"K": "k", "V": "v"}
LENGTH_BYTES_MAX: Final = 64 * 1024 * 1024
_DIGITS: Final = re.compile(rb"[0-9]+")


class Part(NamedTuple):
    """A verb with its modifier, or the text between two of them."""

    verb: str
    modifier: str
    literal: bytes


def has_lengths(text: str) -> bool:
    return any(f"%{verb}" in text.replace("%%", "") for verb in LENGTHS)


class FrameReader:
    """Bytes as they come in, records as they are complete."""

    def __init__(self, parts: list[Part], text: str) -> None:
        self._parts = parts
        self._text = text
        self._buffer = b""
        named = [part.verb for part in parts]
        for index, verb in enumerate(named):
            twin = {small: large for large, small in LENGTHS.items()}.get(verb)
            if verb and verb not in LENGTHS and (twin is None or twin not in named[:index]):
                raise Failure(f"{text!r}: %{verb} needs its length before it")

    def feed(self, chunk: bytes) -> Iterator[Input]:
        self._buffer += chunk
        position = 0
        while position < len(self._buffer):
            found = self._one(position)
            if found is None:
                break
            record, position = found
            yield record
        self._buffer = self._buffer[position:]

    def end(self) -> None:
        if self._buffer.strip(b"\r\n"):
            raise Failure(f"the input ends in the middle of a record, {len(self._buffer)} bytes before {self._text!r}")

    def _one(self, position: int) -> tuple[Input, int] | None:
        """A record and where it ends; None if the rest of it has not come yet."""
        lengths: dict[str, int] = {}
        values: dict[str, bytes] = {}
        for part in self._parts:
            if not part.verb:
                end = position + len(part.literal)
                if self._buffer[position:end] != part.literal[: len(self._buffer) - position]:
                    raise Failure(f"at byte {position} the input is not as {self._text!r} says")
            elif part.verb in LENGTHS:
                found = _length(self._buffer, position, part.modifier)
                if found is None:
                    return None
                lengths[LENGTHS[part.verb]], end = found
            else:
                end = position + lengths[part.verb]
                values[part.verb] = self._buffer[position:end]
            if end > len(self._buffer):
                return None
            position = end
        modifiers = {part.verb: part.modifier for part in self._parts}
        key, value = (
            None if verb not in values else piece_of(verb, modifiers[verb])(values[verb]) for verb in ("k", "v")
        )
        return Input(key=key, value=value), position


def _length(buffer: bytes, position: int, modifier: str) -> tuple[int, int] | None:
    if modifier in ("", "ascii"):
        found = _DIGITS.match(buffer, position)
        if found is None and position < len(buffer):
            raise Failure(f"at byte {position} there is no length")
        if found is None or found.end() == len(buffer):
            return None
        length, end = int(found[0]), found.end()
    else:
        size, read = _binary(modifier)
        end = position + size
        if end > len(buffer):
            return None
        length = read(buffer[position:end])
    if length > LENGTH_BYTES_MAX:
        raise Failure(f"at byte {position} a length of {length} is more than {LENGTH_BYTES_MAX}")
    return length, end


def _binary(modifier: str) -> tuple[int, Callable[[bytes], int]]:
    if modifier == "byte":
        modifier = "big8"
    found = re.fullmatch(r"(big|little|hex)(8|16|32|64)", modifier)
    if found is None:
        raise Failure(f"{{{modifier}}}: a length is ascii, byte, big32, little32, hex32 (or 8, 16, 64)")
    size = int(found[2]) // 8
    if found[1] == "hex":
        return 2 * size, lambda data: int(data, 16)
    order = found[1]
    return size, lambda data: int.from_bytes(data, order)  # type: ignore[arg-type]
