"""From two sets of offsets to what a batch reads: new partitions, partitions that are gone, topics that were made anew.

Pure. A loss is a sentence; whether it stops the query is ``failOnDataLoss``, which the readers look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.offsets import Offsets, Range


class Plan(NamedTuple):
    ranges: list[Range]
    losses: list[str]


def plan(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    *,
    earliest: Mapping[TopicPartition, int],
    renewed: Iterable[str] = (),
) -> Plan:
    """What to read from ``start`` to ``end``.

    ``earliest`` is asked for new partitions and those whose topic was made anew (``renewed``), and is enough there.
    """
    anew = set(renewed)
    ranges: list[Range] = []
    losses: list[str] = []
    for place in sorted(end):
        begin = start.get(place)
        if place.topic in anew or begin is None or begin > end[place]:
            fresh = earliest[place]
            if place.topic in anew:
                losses.append(f"topic {place.topic} was deleted and made again, so what it had is gone")
            elif begin is not None:
                losses.append(f"{place} ends at {end[place]}, but was read up to {begin} before")
            elif fresh:
                losses.append(f"the new partition {place} begins at {fresh}: what was before that is gone")
            begin = fresh
        ranges.append(Range(place, begin, max(begin, end[place])))
    losses += [f"{place} is gone, and it was read up to {start[place]}" for place in sorted(start) if place not in end]
    return Plan(ranges, list(dict.fromkeys(losses)))


def needs_earliest(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], *, renewed: Iterable[str] = ()
) -> list[TopicPartition]:
    """The partitions whose beginning :func:`plan` will want to know."""
    anew = set(renewed)
    return [place for place in sorted(end) if place.topic in anew or place not in start or start[place] > end[place]]


def loss_sentence(losses: Iterable[str]) -> str:
    return f"{'; '.join(losses)}. Start with a new checkpoint, or say failOnDataLoss=false to go on with what is there."


def behind(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
    """Partitions that seem to end before where they were read to."""
    return {place: end[place] for place in sorted(end) if place in start and end[place] < start[place]}
