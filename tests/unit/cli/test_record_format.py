"""How records are printed and read: formats, JSON, CSV, and kcat's letters."""

from __future__ import annotations

import json

import pytest

from barnabas.cli.records.record_input import compile_input
from barnabas.ops.failure import Failure
from barnabas.ops.records.format import Line, compile_output, from_kcat

LINE = Line("orders", 3, 42, 1_700_000_000_123, b"k\xc3\xa9y", b'{"a": 1}', (("x", b"1"), ("y", None)), 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text", b'{"a": 1}\n'),
        ("%t/%p@%o\\n", b"orders/3@42\n"),
        ("%d %T %K %V %H %i", b"1700000000123 6 4 8 2 5"),
        ("%k{hex}|%v{base64}", b"6bc3a979|eyJhIjogMX0="),
        ("%v{json}", b'"{\\"a\\": 1}"'),
        ("%h{%k=%v;}", b"x=1;y=;"),
        ("%h{[%K:%k]}", b"[1:x][1:y]"),
        ("%o{big32}%p{little16}", b"\0\0\0\x2a\x03\0"),
        ("%o{hex16}", b"002a"),
        ("%d{strftime[%Y-%m-%d]}", b"2023-11-14"),
        ("100%%\\t\\x41\\\\", b"100%\tA\\"),
        ("", b""),
    ],
)
def test_a_format_prints_what_it_says(text: str, expected: bytes) -> None:
    assert compile_output(text)(LINE) == expected


@pytest.mark.parametrize("text", ["%q", "%", "%k{rot13}", "%o{big7}", "%h{%k", "\\xzz", "%h{%p}"])
def test_a_format_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(Failure):
        compile_output(text)(LINE)


def test_json_survives_the_way_out_and_in() -> None:
    line = LINE._replace(value=b"\xff\xfe", headers=(("h", b"\xff"), ("n", None)))
    printed = compile_output("json")(line)
    assert json.loads(printed)["value_base64"] == "//4="
    read = compile_input("json")(printed)
    assert (read.key, read.value, read.headers) == (line.key, line.value, line.headers)
    assert read.timestamp_ms == line.timestamp_ms
    assert read.partition is None  # the key decides again


def test_a_null_is_not_an_empty_value_in_json() -> None:
    printed = compile_output("json")(LINE._replace(key=None, value=b""))
    read = compile_input("json")(printed)
    assert (read.key, read.value) == (None, b"")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("%v", b"a b", (None, b"a b", None, None)),
        ("%k\\t%v", b"key\tvalue\twith tab", (b"key", b"value\twith tab", None, None)),
        ("%k: %v\\n", b"a: b: c", (b"a", b"b: c", None, None)),
        ("%p %d %k=%v", b"3 99 x=y", (b"x", b"y", 3, 99)),
        ("<%k|%v>", b"<a|b>", (b"a", b"b", None, None)),
        ("%k\\t%v", b"\t", (b"", b"", None, None)),
    ],
)
def test_a_line_is_read_as_its_format_says(text: str, line: bytes, expected: tuple[object, ...]) -> None:
    assert compile_input(text)(line)[:4] == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [("%k\\t%v", b"no tab"), ("<%v>", b"a>"), ("<%v>", b"<a"), ("%p %v", b"x y"), ("json", b"{"), ("json", b"[]")],
)
def test_a_line_that_does_not_fit_is_refused(text: str, line: bytes) -> None:
    with pytest.raises(Failure, match="line"):
        compile_input(text)(line)


@pytest.mark.parametrize("text", ["%k%v", "%x", "%"])
def test_an_input_format_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(Failure):
        compile_input(text)


def test_kcat_formats_mean_here_what_they_mean_there() -> None:
    shown = compile_output(from_kcat("%t [%p] at %o: key %k (%K), value %s (%S), time %T, headers %h, %%\\n"))(LINE)
    assert shown == (
        'orders [3] at 42: key k\u00e9y (4), value {"a": 1} (8), time 1700000000123, headers x=1,y=,, %\n'.encode()
    )
    assert compile_output(from_kcat("%R"))(LINE) == b"\0\0\0\x08"
    assert compile_output(from_kcat("text"))(LINE) == b'{"a": 1}\n'


def test_pretty_shows_json_as_what_it_says_and_meta_shows_none_of_it() -> None:
    pretty = json.loads(compile_output("pretty")(LINE))
    assert pretty["value"] == {"a": 1}
    meta = json.loads(compile_output("meta")(LINE))
    assert (meta["key_size"], meta["value_size"], meta["headers"]) == (4, 8, ["x", "y"])
    assert "value" not in meta


def test_csv_names_its_columns_in_the_first_line() -> None:
    read = compile_input("csv")
    assert read(b"key, value,header.region,partition") is None
    record = read(b'k,"a, ""b""",eu,')
    assert record is not None
    assert record == (b"k", b'a, "b"', None, None, (("region", b"eu"),), None)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([b"key,colour"], "colour"),
        ([b"key,value", b"only"], "cells"),
        ([b"key,partition", b"k,x"], "number"),
        ([b"key", b'"open'], "not CSV"),
    ],
)
def test_csv_that_does_not_fit_is_refused(lines: list[bytes], said: str) -> None:
    read = compile_input("csv")
    *good, bad = lines
    for line in good:
        read(line)
    with pytest.raises(Failure, match=said):
        read(bad)
