"""What a topic may be called."""

from __future__ import annotations

import pytest

from barnabas.metadata.topic_names import NAME_LENGTH_MAX, can_collide, check, is_internal, reason_invalid, unified
from barnabas.model.errors import INVALID_TOPIC_EXCEPTION, ApiError


@pytest.mark.parametrize("name", ["a", "orders", "a.b_c-D9", "x" * NAME_LENGTH_MAX, "...", "-"])
def test_a_plain_name_is_allowed(name: str) -> None:
    assert reason_invalid(name) is None
    check(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * (NAME_LENGTH_MAX + 1), "a b", "a/b", "é", "a\n", "１"])
def test_a_name_that_is_no_directory_is_refused(name: str) -> None:
    assert reason_invalid(name)
    with pytest.raises(ApiError) as refused:
        check(name)
    assert refused.value.error is INVALID_TOPIC_EXCEPTION


def test_names_that_differ_in_dots_and_underscores_are_one_metric() -> None:
    assert unified("a.b_c") == unified("a_b.c")
    assert can_collide("a.b")
    assert not can_collide("a-b")


def test_the_brokers_own_topics_are_internal() -> None:
    assert is_internal("__consumer_offsets")
    assert not is_internal("__cluster_metadata")
