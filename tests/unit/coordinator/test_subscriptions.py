"""Names and patterns become topics: whole names only, in slices, with bounds; and a hash that notices every change."""

from __future__ import annotations

import pytest
from consumer_play import topics_image

from barnabas.coordinator.consumer.subscriptions import (
    PATTERN_LENGTH_MAX,
    Resolution,
    ResolvedPattern,
    compiled,
    metadata_hash,
    subscribed_names,
)
from barnabas.model.errors import ApiError


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("foo", {"foo"}),
        ("foo.*", {"foo", "foo-1", "foobar"}),
        (".*bar", {"foobar", "bar"}),
        ("(?i)FOO", {"foo"}),
        ("foo|bar", {"foo", "bar"}),
        (r"foo-\d+", {"foo-1"}),
        (r"\Qfoo-1\E", {"foo-1"}),
        ("", set()),
    ],
)
def test_a_pattern_matches_whole_names(pattern, found):
    resolution = Resolution([pattern], topics_image({"foo": 1, "foo-1": 1, "foobar": 1, "bar": 1}), version=7)
    assert resolution.proceed()
    assert resolution.result(now_ms=9) == {pattern: ResolvedPattern(frozenset(found), 7, 9)}


def test_many_names_take_several_slices_and_none_is_forgotten():
    names = {f"t{number}": 1 for number in range(3_000)}
    resolution = Resolution(["t.*", "t1.*"], topics_image(names), version=1)
    slices = 1
    while not resolution.proceed():
        slices += 1
    assert slices > 5
    found = resolution.result(0)
    assert found["t.*"].topics == set(names)
    assert found["t1.*"].topics == {name for name in names if name.startswith("t1")}


def test_a_costly_pattern_gets_fewer_names_in_a_slice():
    names = topics_image({f"{'a' * 12}{number}": 1 for number in range(100)})
    cheap, costly = Resolution(["a.*"], names, version=1), Resolution(["(a?){700}b"], names, version=1)
    assert cheap.proceed()
    assert not costly.proceed()


def test_a_pattern_that_this_version_does_not_take_stands_for_nothing():
    resolution = Resolution(["(", "t"], topics_image({"t": 1}), version=1)
    assert resolution.proceed()
    assert {pattern: resolved.topics for pattern, resolved in resolution.result(0).items()} == {"(": set(), "t": {"t"}}


@pytest.mark.parametrize("pattern", ["(", "a**b(", "x" * (PATTERN_LENGTH_MAX + 1), "((a{100}){100}){100}"])
def test_what_is_no_pattern_or_too_large_is_refused(pattern):
    with pytest.raises(ApiError, match="INVALID_REGULAR_EXPRESSION"):
        compiled(pattern)


def test_the_hash_changes_when_a_topic_comes_goes_or_grows_and_only_then():
    names = {"a", "b"}
    base = metadata_hash(names, topics_image({"a": 1, "b": 2, "c": 3}))
    assert base == metadata_hash(names, topics_image({"b": 2, "a": 1, "c": 9, "d": 1}))
    others = [{"a": 1}, {"a": 1, "b": 3}, {"a": 2, "b": 1}, {"a": 2, "b": 2}]
    hashes = {metadata_hash(names, topics_image(counts)) for counts in others}
    assert len(hashes | {base}) == len(others) + 1
    assert all(-(2**63) <= each < 2**63 for each in hashes)
    assert metadata_hash(names, topics_image({"c": 1})) == 0


def test_subscriptions_add_up():
    patterns = {"x.*": ResolvedPattern(frozenset({"x1", "x2"}), 1, 1)}
    assert subscribed_names([(("a", "x1"), ""), (("b",), "x.*"), ((), "unresolved.*")], patterns) == {
        "a",
        "b",
        "x1",
        "x2",
    }
