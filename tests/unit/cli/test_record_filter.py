"""Which records a filter shows, and that bytes of any kind fail none."""

from __future__ import annotations

from argparse import ArgumentParser

import pytest

from barnabas.ops.failure import Failure
from barnabas.ops.records.filter import add_filters, compile_filter
from barnabas.ops.records.format import Line

LINE = Line("t", 0, 5, 1000, b"k1", b'{"total": 12}', (("region", b"eu"), ("empty", None)))


def holds(*words: str, line: Line = LINE) -> bool:
    parser = ArgumentParser()
    add_filters(parser)
    condition = compile_filter(parser.parse_args(words))
    return condition is None or condition(line)


def test_without_a_filter_nothing_is_left_out() -> None:
    assert holds()


@pytest.mark.parametrize(
    "words",
    [
        ["--key", "k1"],
        ["--key", "other", "--key", "k1"],
        ["--grep", "tot.l"],
        ["--grep", "^k1$"],
        ["--grep", "^eu$"],
        ["-H", "region"],
        ["-H", "region:eu", "-H", "empty"],
        ["--filter", "value.total == 12 && headers.region == 'eu' && offset == 5"],
        ["--key", "k1", "--grep", "total", "--filter", "true"],
    ],
)
def test_what_holds_is_shown(words: list[str]) -> None:
    assert holds(*words)


@pytest.mark.parametrize(
    "words",
    [
        ["--key", "k"],
        ["--grep", "nowhere"],
        ["-H", "region:us"],
        ["-H", "other"],
        ["--tombstones"],
        ["--key", "k1", "--filter", "false"],
    ],
)
def test_one_condition_that_does_not_hold_is_enough(words: list[str]) -> None:
    assert not holds(*words)


def test_a_tombstone_has_no_value_to_look_into() -> None:
    tombstone = LINE._replace(value=None, key=None)
    assert holds("--tombstones", line=tombstone)
    assert holds("--filter", "value == null && key == null", line=tombstone)
    assert not holds("--filter", "value.total > 1", line=tombstone)


def test_bytes_that_are_no_text_fail_no_filter() -> None:
    assert holds("--filter", "size(value) > 0", line=LINE._replace(value=b"\xff\xfe"))


def test_a_pattern_that_is_none_is_said() -> None:
    with pytest.raises(Failure, match="regular expression"):
        holds("--grep", "(")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("words", [["--grep", "^(a+)+$"], ["--filter", "value.matches('^(a+)+$')"]])
def test_a_hostile_pattern_is_linear_in_the_text(words: list[str]) -> None:
    """Python's re would need 2 ** 50_000 steps."""
    assert not holds(*words, line=LINE._replace(value=b"a" * 50_000 + b"b"))
