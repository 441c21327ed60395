"""The order of topics and partitions in a request, in which its answer names them: each topic once.

Clients keep answers in maps by topic. So a handler that answers good and bad partitions apart puts them together here
before it returns them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from barnabas.model.ids import ZERO_UUID

Entry = TypeVar("Entry", bound=Any)


class TopicOrder:
    def __init__(self, topics: Iterable[Any]) -> None:
        """``topics`` are the entries of the request, before the handler takes anything out of them."""
        self._places: dict[Any, dict[int, int]] = {}
        for topic in topics:
            places = self._places.setdefault(_key(topic), {})
            for index in _indexes(topic):
                places.setdefault(index, len(places))

    def arrange(self, answers: Iterable[Entry]) -> list[Entry]:
        """One entry for each topic of the request, in its order; the partitions of a topic likewise."""
        entries: dict[Any, Entry] = {}
        for answer in answers:
            entry = entries.setdefault(_key(answer), answer)
            if entry is not answer:
                entry.partitions += answer.partitions
        arranged = [entries[key] for key in self._places if key in entries]
        for entry in arranged:
            places = self._places[_key(entry)]
            entry.partitions.sort(key=lambda row: places[row.partition_index])
        return arranged


def _key(topic: Any) -> Any:
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    return topic.name if topic_id == ZERO_UUID else topic_id


def _indexes(topic: Any) -> list[int]:
    if hasattr(topic, "partition_indexes"):
        indexes: list[int] = topic.partition_indexes
        return indexes
    return [each.partition_index for each in topic.partitions]
