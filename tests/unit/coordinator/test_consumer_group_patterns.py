"""Topics and patterns that members of the consumer protocol subscribe to, as transcripts."""

from __future__ import annotations

import pytest
from consumer_play import GROUP, Play

from barnabas.model import errors

# --- topics ---------------------------------------------------------------------------------------------------------


def test_new_partitions_are_assigned_at_the_next_heartbeat():
    play = Play({"t": 2})
    play.join("a", "t")
    play.set_topics({"t": 3})
    assert play.ask("a", 1, {"t": [0, 1]}) == (2, {"t": [0, 1, 2]})


def test_a_topic_may_come_after_those_who_want_it_and_go_before_them():
    play = Play()
    assert play.join("a", "t") == (1, {})
    play.set_topics({"t": 2})
    assert play.ask("a", 1, {}) == (2, {"t": [0, 1]})
    play.set_topics({})
    assert play.ask("a", 2, {"t": [0, 1]}) == (2, {})
    assert play.ask("a", 2, {}) == (3, None)


def test_topics_that_nobody_here_wants_change_nothing():
    play = Play({"t": 2})
    play.join("a", "t")
    written = len(play.log)
    play.set_topics({"t": 2, "other": 5})
    assert play.ask("a", 1, {"t": [0, 1]}) == (1, None)
    assert len(play.log) == written


# --- patterns -------------------------------------------------------------------------------------------------------


def test_a_pattern_stands_for_all_topics_whose_whole_name_it_matches():
    play = Play({"foo-1": 1, "foo-2": 1, "a-foo-3": 1})
    assert play.join("a", subscribed_topic_regex="foo-.*") == (1, {"foo-1": [0], "foo-2": [0]})


def test_a_pattern_finds_new_topics():
    play = Play({"foo-1": 1})
    play.join("a", subscribed_topic_regex="foo-.*")
    play.advance(5_000)
    play.set_topics({"foo-1": 1, "foo-2": 1, "bar": 1})
    assert play.ask("a", 1, {"foo-1": [0]}) == (2, {"foo-1": [0], "foo-2": [0]})


def test_names_and_pattern_add_up_and_may_change():
    play = Play({"foo-1": 1, "bar": 1})
    assert play.join("a", "bar", subscribed_topic_regex="foo.*") == (1, {"bar": [0], "foo-1": [0]})
    assert play.ask("a", 1, {"bar": [0], "foo-1": [0]}, subscribed_topic_regex="") == (1, {"bar": [0]})
    assert play.ask("a", 1, {"bar": [0]}) == (2, None)
    assert play.group.patterns == {}


def test_a_pattern_goes_with_the_last_who_uses_it():
    play = Play({"foo-1": 2})
    play.join("a", subscribed_topic_regex="foo.*")
    play.join("b", subscribed_topic_regex="foo.*")
    play.ask("a", -1)
    assert set(play.group.patterns) == {"foo.*"}
    play.ask("b", -1)
    assert play.group.patterns == {}


@pytest.mark.parametrize("pattern", ["(", "a{2000}", "(?=x)", "x" * 5000, r"(a)\1", "((a{100}){100}){100}"])
def test_a_pattern_that_is_none_or_too_large_is_refused(pattern):
    play = Play({"t": 1})
    assert play.join("a", subscribed_topic_regex=pattern) == errors.INVALID_REGULAR_EXPRESSION.code
    assert GROUP not in play.table
    play.join("b", "t")
    assert play.ask("b", 1, subscribed_topic_regex=pattern) == errors.INVALID_REGULAR_EXPRESSION.code
    assert play.ask("b", 1, {"t": [0]}) == (1, None)


def test_many_topics_are_looked_through_in_slices():
    play = Play({f"foo-{number}": 1 for number in range(2_000)})
    assert play.join("a", subscribed_topic_regex="foo-.*5") == (1, {})
    play.advance(0)
    epoch, assignment = play.ask("a", 1, {})
    assert (epoch, len(assignment)) == (2, 200)
