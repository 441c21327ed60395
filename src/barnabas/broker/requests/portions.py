"""A request of many rows is served in portions: the handler sees a few rows at a time, and the answers become one.

An API declares where its rows are (``Portions``). The dispatcher divides a request that has more than ``ROWS_MIN`` of
them, runs permission check and handler for each portion, and lets the loop serve other connections in between
(``world.turns``). The size of a portion follows the time that the last one took, unless the handler is a coroutine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.model.errors import Malformed
from barnabas.wire.message import Message
from barnabas.wire.schema import Array, Nested

ROWS_MIN: Final = 100  # fewer rows are one portion
ATOMIC_ROWS_MIN: Final = 1000  # fewer rows are one portion, where Kafka writes a request as one batch
ROWS_FIRST: Final = 50  # rows of a portion while it is not known what a row costs
ROWS_MAX: Final = 1000  # rows of a portion, however cheap they are
INNER_ROWS_MAX: Final = 40_000  # elements in the arrays of one row, which is not divided
PORTION_NS: Final = 1_500_000  # time that a portion should take
ENCODED_ROWS_MAX: Final = 5000  # rows of an answer that are encoded at once; more are encoded in turns


@dataclass(frozen=True, slots=True)
class Portions:
    """Where a request has its rows and its response the answers: paths of array fields, divided by dots.

    Both paths have the same length: the rows of an inner array are divided as well. If the path of the answers is
    shorter, an inner array is divided and the answers of its row are appended as rows of their own.
    """

    rows: str
    answers: str
    rows_min: int = ROWS_MIN  # fewer rows are one portion, and so are written as one batch where they are written
    path: tuple[str, ...] = field(init=False)
    answer_path: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", tuple(self.rows.split(".")))
        object.__setattr__(self, "answer_path", tuple(self.answers.split(".")))

    def is_long(self, message: Message) -> bool:
        """Whether a request has more rows than the handler gets at once."""
        return weight(message, self.path, self.rows_min) > self.rows_min

    def splitter(self, message: Message) -> Splitter:
        return Splitter(message, self.path, rows_first=ROWS_FIRST if self.rows_min == ROWS_MIN else self.rows_min)

    def merge(self, whole: Any, portion: Any, depth: int) -> None:
        """Add the answer of a portion; ``depth`` levels of its first row continue the last row of the whole."""
        for each in whole.fields:
            if each.name == self.answer_path[0]:
                continue
            if isinstance(each.type, Array):
                known = getattr(whole, each.name)
                if known is not None:
                    known += [row for row in getattr(portion, each.name) or () if row not in known]
            elif not getattr(whole, each.name) and getattr(portion, each.name):
                setattr(whole, each.name, getattr(portion, each.name))
        _merge_rows(whole, portion, self.answer_path, depth)


class Splitter:
    """Divides one request; the caller says how many rows the next portion has."""

    def __init__(self, message: Message, path: tuple[str, ...], *, rows_first: int = ROWS_FIRST) -> None:
        self._message = message
        self._path = path
        self._rows_first = rows_first
        self.rows_max = rows_first

    def portions(self) -> Iterator[tuple[Any, int]]:
        """Copies of the request with some of its rows, and how many levels of their first row are a continuation."""
        for piece, depth, _ in self._pieces(self._message, self._path):
            yield piece, depth

    def took(self, nanoseconds: int) -> None:
        """Choose the size of the next portion by what the last one cost."""
        fitting = self.rows_max * PORTION_NS // max(1, nanoseconds)
        self.rows_max = max(1, min(fitting, 2 * self.rows_max, ROWS_MAX))

    def began(self, nanoseconds: int) -> None:
        """As ``took``, for a portion of which only the beginning is known: the next one is not larger for it."""
        self.took(nanoseconds)
        self.rows_max = min(self.rows_max, self._rows_first)

    def _pieces(self, node: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, int, int]]:
        """Copies of the node, each with the rows of one portion; the depth of continuation; the number of rows."""
        rows, rest = getattr(node, path[0]), path[1:]
        picked: list[Any] = []
        count = 0
        for row in rows:
            heavy = weight(row, rest, self.rows_max) if rest else 1
            if not rest and isinstance(row, Message) and rows_in(row, INNER_ROWS_MAX) > INNER_ROWS_MAX:
                raise Malformed(f"a row of {path[0]} has more than {INNER_ROWS_MAX} elements")
            if heavy > self.rows_max:
                if picked:
                    yield with_rows(node, path[0], picked), 0, count
                    picked, count = [], 0
                is_first = True
                for piece, inner, pieces in self._pieces(row, rest):
                    yield with_rows(node, path[0], [piece]), 0 if is_first else 1 + inner, pieces
                    is_first = False
                continue
            if count and count + heavy > self.rows_max:
                yield with_rows(node, path[0], picked), 0, count
                picked, count = [], 0
            picked.append(row)
            count += heavy
        if picked:
            yield with_rows(node, path[0], picked), 0, count


def weight(node: Any, path: tuple[str, ...], limit: int) -> int:
    """Number of rows under a node, counted up to the limit."""
    rows = getattr(node, path[0])
    if not rows:
        return 1
    if len(path) == 1 or len(rows) > limit:
        return len(rows)
    total = 0
    for row in rows:
        total += weight(row, path[1:], limit)
        if total > limit:
            break
    return total


def with_rows(node: Any, name: str, rows: list[Any]) -> Any:
    """A copy of a message with other rows in one of its fields."""
    values = {each.name: getattr(node, each.name) for each in node.fields}
    values[name] = rows
    return type(node)(**values)


def _merge_rows(whole: Any, portion: Any, path: tuple[str, ...], depth: int) -> None:
    known, more = getattr(whole, path[0]), getattr(portion, path[0])
    if not more:
        return
    if known is None:
        setattr(whole, path[0], more)
        return
    if depth and known and len(path) > 1 and _is_same(known[-1], more[0], path[1]):
        _merge_rows(known[-1], more[0], path[1:], depth - 1)
        more = more[1:]
    known += more


def _is_same(first: Any, second: Any, inner: str) -> bool:
    return all(getattr(first, each.name) == getattr(second, each.name) for each in first.fields if each.name != inner)


def rows_in(message: Any, limit: int) -> int:
    """Number of elements in the arrays of a message, counted up to the limit."""
    total = 0
    for each in message.fields:
        if not isinstance(each.type, Array):
            continue
        rows = getattr(message, each.name)
        if rows:
            total += len(rows)
            if total > limit:
                return total
            if isinstance(each.type.element, Nested):
                for row in rows:
                    total += rows_in(row, limit - total)
                    if total > limit:
                        return total
    return total
