"""Offsets as a query has them: the JSON of checkpoints and options, limits of a batch, and how ranges become tasks.

Pure: what the cluster says comes in as arguments. ``source_options.py`` says where a query starts and ends,
``positions.py`` asks the cluster for it.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.model.ids import TopicPartition
from barnabas.spark.errors import InvalidOption

LATEST: Final = -1
EARLIEST: Final = -2

Offsets: TypeAlias = dict[TopicPartition, int]
OffsetJson: TypeAlias = dict[str, dict[str, int]]


class Range(NamedTuple):
    """Records of a partition from ``start`` up to and without ``end``."""

    place: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetJson:
    """``{"topic": {"0": 23}}``, as the Kafka connector writes it into checkpoints."""
    found: OffsetJson = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def from_json(value: object) -> Offsets:
    if not isinstance(value, dict) or not all(isinstance(parts, dict) for parts in value.values()):
        raise InvalidOption(f"{value!r} are no offsets: write them like {{'topic': {{'0': 23}}}}")
    return {
        TopicPartition(topic, int(index)): int(offset)
        for topic, parts in value.items()
        for index, offset in parts.items()
    }


def parse(name: str, text: str) -> Offsets:
    """Offsets or times that an option has as JSON."""
    try:
        return from_json(json.loads(text))
    except (ValueError, TypeError) as error:
        example = '{"orders": {"0": 23, "1": -2}}'
        raise InvalidOption(f"{name}={text!r} cannot be read ({error}): write it like {example}") from None


def parse_assignment(text: str) -> list[TopicPartition]:
    """``{"topic": [0, 1]}``."""
    try:
        value = json.loads(text)
        return sorted(TopicPartition(topic, int(index)) for topic, indexes in value.items() for index in indexes)
    except (ValueError, TypeError, AttributeError):
        raise InvalidOption(f'assign={text!r} cannot be read: write it like {{"orders": [0, 1]}}') from None


def limited(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], count_max: int) -> Offsets:
    """An end that is at most ``count_max`` offsets away in all, each partition in proportion to what it has."""
    sizes = {place: end[place] - start.get(place, 0) for place in end}
    total = sum(size for size in sizes.values() if size > 0)
    if total <= count_max:
        return dict(end)
    result: Offsets = {}
    for place, size in sizes.items():
        if size <= 0:
            result[place] = end[place]
            continue
        share = count_max * size / total
        # A partition with little never waits for ever behind one with much.
        count = math.ceil(share) if share < 1 else math.floor(share)
        result[place] = min(end[place], start.get(place, 0) + count)
    return result


def pending(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    return sum(max(0, offset - start.get(place, offset)) for place, offset in end.items())


def split(ranges: Iterable[Range], *, count_min: int | None, size_max: int | None) -> list[Range]:
    """Ranges cut into more, if a task may have only so many records or there shall be at least so many tasks."""
    found = [each for each in ranges if each.size]
    if size_max is not None:
        found = [part for each in found for part in _cut(each, math.ceil(each.size / size_max))]
    if count_min is None or len(found) >= count_min or not found:
        return found
    total = sum(each.size for each in found)
    return [part for each in found for part in _cut(each, max(1, round(count_min * each.size / total)))]


def _cut(whole: Range, count: int) -> list[Range]:
    count = min(count, whole.size)
    bounds = [whole.start + whole.size * index // count for index in range(count)] + [whole.end]
    return [Range(whole.place, start, end) for start, end in itertools.pairwise(bounds)]
