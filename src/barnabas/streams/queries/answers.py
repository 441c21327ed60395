"""Answers to queries of stores: values with the position for which they are true."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.streams.positions import Position

__all__ = ["Answer", "Answers", "StoreRow", "Version"]

R = TypeVar("R")


class Answer(NamedTuple):
    """The value of a key, or None if there is none.

    position: offsets of the source topics that the partition of the store has processed: the offset of the next
    record, by topic and partition. The answer contains the effects of exactly the records before it.
    """

    value: Any
    timestamp: int | None
    partition: int
    position: Position


class StoreRow(NamedTuple):
    """A row of a store. The key of a window or session is a ``Windowed``."""

    key: Any
    value: Any
    timestamp: int


class Version(NamedTuple):
    """A version of a key: valid from a time until another one, which is None for the newest version."""

    value: Any
    valid_from: int
    valid_to: int | None


@dataclass(frozen=True)
class Answers(Sequence[R], Generic[R]):
    """Rows, and the position of each partition of the store that they are from."""

    rows: list[R]
    positions: Mapping[int, Position]

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)
