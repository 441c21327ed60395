"""Offsets of a query: their JSON, the limits of a batch, and how ranges become tasks."""

from __future__ import annotations

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.offsets import Range, from_json, limited, parse, parse_assignment, pending, split, to_json
from barnabas.spark.errors import InvalidOption

A, B = TopicPartition("a", 0), TopicPartition("a", 1)


def test_the_json_is_that_of_the_kafka_connector() -> None:
    assert to_json({B: 5, A: 23}) == {"a": {"0": 23, "1": 5}}
    assert from_json({"a": {"0": 23, "1": 5}}) == {A: 23, B: 5}
    assert parse("startingOffsets", '{"a": {"0": -2}}') == {A: -2}
    assert parse_assignment('{"a": [1, 0]}') == [A, B]


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1}', '{"a": {"x": 1}}', "nonsense"])
def test_what_is_no_json_of_offsets_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"write (it|them) like"):
        parse("startingOffsets", text)


def test_a_limit_is_shared_in_proportion_and_nobody_starves() -> None:
    assert limited({A: 0, B: 0}, {A: 900, B: 100}, 100) == {A: 90, B: 10}
    assert limited({A: 0, B: 0}, {A: 10_000, B: 1}, 10) == {A: 9, B: 1}
    assert limited({A: 5, B: 5}, {A: 6, B: 5}, 10) == {A: 6, B: 5}
    assert pending({A: 5}, {A: 9, B: 3}) == 4


def test_ranges_are_cut_so_that_nothing_is_lost_or_doubled() -> None:
    whole = [Range(A, 10, 110), Range(B, 0, 7)]
    for count_min, size_max in ((None, None), (5, None), (50, None), (None, 3), (9, 40)):
        parts = split(whole, count_min=count_min, size_max=size_max)
        seen = sorted((part.place, offset) for part in parts for offset in range(part.start, part.end))
        assert seen == sorted((each.place, offset) for each in whole for offset in range(each.start, each.end))
        assert size_max is None or max(part.size for part in parts) <= size_max
    assert split([Range(A, 3, 3)], count_min=4, size_max=None) == []
