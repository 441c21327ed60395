"""Records whose format says how long they are, and the other ways in which produce reads a line."""

from __future__ import annotations

import pytest

from barnabas.cli.records.record_frames import FrameReader, Part, has_lengths
from barnabas.cli.records.record_input import Input, compile_input, parse_format
from barnabas.ops.failure import Failure
from barnabas.ops.records.format import Line, compile_output


def reader(text: str) -> FrameReader:
    parts = [
        part
        for verb, modifier, literal in parse_format(text, "kvKV")
        for part in ((Part(verb, modifier, b""),) if verb else ()) + ((Part("", "", literal),) if literal else ())
    ]
    return FrameReader(parts, text)


@pytest.mark.parametrize("text", ["%K{big32}%k%V{little16}%v", "%K %k %V:%v\\n", "%K{hex8}%k%V{byte}%v;"])
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_what_consume_prints_with_lengths_is_read_again_however_it_is_cut(text: str, step: int) -> None:
    records = [(b"key", b"value\nwith lines"), (b"", b"0 1 2"), (b"\x00" * 9, b"")]
    show = compile_output(text)
    data = b"".join(show(Line("t", 0, 0, 0, key, value, ())) for key, value in records)
    frames = reader(text)
    found = [each for at in range(0, len(data), step) for each in frames.feed(data[at : at + step])]
    frames.end()
    assert [(each.key, each.value) for each in found] == records


def test_an_input_that_ends_within_a_record_is_an_error() -> None:
    frames = reader("%V{big32}%v")
    assert list(frames.feed(b"\0\0\0\5hell")) == []
    with pytest.raises(Failure, match="middle of a record"):
        frames.end()


@pytest.mark.parametrize(
    ("text", "data", "reason"),
    [
        ("%k%V%v", b"", "needs its length"),
        ("%V{big99}%v", b"\0\0\0\0\0", "a length is"),
        ("%V %v", b"x y", "there is no length"),
        ("%V{big64}%v", b"\xff" * 8, "is more than"),
        ("<%V{big8}%v", b"x", "is not as"),
    ],
)
def test_what_is_no_length_is_refused(text: str, data: bytes, reason: str) -> None:
    with pytest.raises(Failure, match=reason):
        list(reader(text).feed(data))


def test_only_capitals_are_lengths() -> None:
    assert has_lengths("%K%k")
    assert not has_lengths("%k %v %%V")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("%k=%v{hex}", b"a=00ff", Input(b"a", b"\x00\xff")),
        ("%k{base64} %v", b"AAE= v", Input(b"\x00\x01", b"v")),
        ("%v{json}", b'{"a":  1}', Input(None, b'{"a": 1}')),
        ("%t|%v", b"orders|x", Input(None, b"x", topic="orders")),
        ("%h{%k=%v,};%v", b"a=1,b=2,;x", Input(None, b"x", headers=(("a", b"1"), ("b", b"2")))),
        ("%h{%k:%v };%v", b";x", Input(None, b"x")),
    ],
)
def test_a_line_may_hold_other_forms_topics_and_headers(text: str, line: bytes, expected: Input) -> None:
    assert compile_input(text)(line) == expected


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("%v{hex}", b"zz", "cannot be read"),
        ("%v{rot13}", b"", "say hex"),
        ("%h{%k};%v", b"", "how one header is written"),
        ("%h{%k=%v,};%v", b"a,;x", "has no '='"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, line: bytes, reason: str) -> None:
    with pytest.raises(Failure, match=reason):
        compile_input(text)(line)
