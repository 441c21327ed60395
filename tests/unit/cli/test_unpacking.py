"""Bytes printed as the numbers and texts that they hold, as the letters of a format say."""

from __future__ import annotations

import pytest

from barnabas.ops.failure import Failure
from barnabas.ops.records.format import Line, compile_output
from barnabas.ops.records.unpacking import MISMATCH, compile_unpacking

DATA = b"\x00\x00\x00\x2a" + b"\xff" * 8 + b"end"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">I", b"42"),
        ("<I", b"704643072"),
        (">Iq", b"42 -1"),
        (">IQs", b"42 18446744073709551615 end"),
        (">I <h H bB", b"42 -1 65535 -1 255"),
        ("xxxx q c.c$", b"-1 e n d"),
        (">I$", MISMATCH),
        (">qqq", MISMATCH),
    ],
)
def test_bytes_are_printed_as_what_they_hold(text: str, expected: bytes) -> None:
    assert compile_unpacking(text)(DATA) == expected


def test_a_format_unpacks_keys_and_values() -> None:
    line = Line("t", 0, 0, 0, b"\0\7", DATA, ())
    assert compile_output("%k{unpack[>H]} %v{unpack[>Iqs]}\\n")(line) == b"7 42 -1 end\n"


@pytest.mark.parametrize("text", ["", "z", ">I,q"])
def test_letters_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(Failure, match="unpack"):
        compile_unpacking(text)
