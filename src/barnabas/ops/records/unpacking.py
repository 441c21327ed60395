"""Binary keys and values on the command line: ``%v{unpack[>Iq]}`` prints a big-endian number of 4 bytes and one of 8.

The letters are those of rpk: ``>`` and ``<`` for the order of bytes, b h i q for signed numbers of 1, 2, 4 and 8 bytes
and B H I Q for unsigned ones, x for a byte to skip, c for one character, s for the rest as text, $ for the end.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from barnabas.ops.failure import Failure

NUMBERS: Final = "bBhHiIqQ"
LETTERS: Final = f"<>x{NUMBERS}cs$"
MISMATCH: Final = b"(does not fit)"


def compile_unpacking(text: str) -> Callable[[bytes], bytes]:
    """The function that prints what the bytes hold, separated by spaces; bytes that do not fit are said to."""
    letters = text.replace(" ", "").replace(".", "c")
    for letter in letters:
        if letter not in LETTERS:
            raise Failure(f"unpack[{text}]: there is no {letter!r}; say one of {' '.join(LETTERS)}")
    if not letters:
        raise Failure("unpack[]: say what is in there, such as unpack[>Iq]")
    return lambda data: _unpack(letters, data)


def _unpack(letters: str, data: bytes) -> bytes:
    order, position = ">", 0
    found: list[bytes] = []
    for letter in letters:
        if letter in "<>":
            order = letter
        elif letter == "$":
            if position != len(data):
                return MISMATCH
        elif letter == "s":
            found.append(data[position:])
            position = len(data)
        else:
            layout = Struct(order + ("c" if letter == "c" else letter))
            if position + layout.size > len(data):
                return MISMATCH
            if letter != "x":
                (value,) = layout.unpack_from(data, position)
                found.append(value if isinstance(value, bytes) else b"%d" % value)
            position += layout.size
    return b" ".join(found)
