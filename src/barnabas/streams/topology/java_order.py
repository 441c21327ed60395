"""The order in which Java's hash sets and tree sets hand out their members, which Kafka's descriptions depend on.

A tree set orders its members when they are added. Kafka's sets compare nodes by a size that grows later, so the
order of the description follows from the history of the insertions and not from the final sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

__all__ = ["TreeSet", "hash_order"]

T = TypeVar("T")


def _spread_hash(text: str) -> int:
    digest = 0
    data = text.encode("utf-16-be")
    for position in range(0, len(data), 2):
        digest = (31 * digest + (data[position] << 8 | data[position + 1])) & 0xFFFFFFFF
    return digest ^ (digest >> 16)


def hash_order(names: Iterable[str]) -> list[str]:
    """Return distinct names in the order in which a Java ``HashSet`` iterates over them."""
    distinct = list(dict.fromkeys(names))
    capacity = 16
    while len(distinct) > capacity * 3 // 4:
        capacity *= 2
    return sorted(distinct, key=lambda name: _spread_hash(name) & (capacity - 1))


class _Entry(Generic[T]):
    __slots__ = ("is_red", "left", "member", "parent", "right")

    def __init__(self, member: T, parent: _Entry[T] | None) -> None:
        self.member = member
        self.parent = parent
        self.left: _Entry[T] | None = None
        self.right: _Entry[T] | None = None
        self.is_red = True


class TreeSet(Generic[T]):
    """A red-black tree that compares only while it inserts, as Java's does."""

    def __init__(self, compare: Callable[[T, T], int]) -> None:
        self._compare = compare
        self._root: _Entry[T] | None = None

    def add(self, member: T) -> None:
        """Add a member unless an equal one is found on the way down."""
        parent, at, order = None, self._root, 0
        while at is not None:
            order = self._compare(member, at.member)
            if order == 0:
                return
            parent, at = at, at.left if order < 0 else at.right
        entry = _Entry(member, parent)
        if parent is None:
            self._root = entry
        elif order < 0:
            parent.left = entry
        else:
            parent.right = entry
        self._rebalance(entry)

    def __iter__(self) -> Iterator[T]:
        stack: list[_Entry[T]] = []
        at = self._root
        while stack or at is not None:
            while at is not None:
                stack.append(at)
                at = at.left
            entry = stack.pop()
            yield entry.member
            at = entry.right

    def _rotate(self, entry: _Entry[T], *, to_left: bool) -> None:
        child = entry.right if to_left else entry.left
        assert child is not None
        inner = child.left if to_left else child.right
        if to_left:
            entry.right, child.left = inner, entry
        else:
            entry.left, child.right = inner, entry
        if inner is not None:
            inner.parent = entry
        child.parent = entry.parent
        if entry.parent is None:
            self._root = child
        elif entry.parent.left is entry:
            entry.parent.left = child
        else:
            entry.parent.right = child
        entry.parent = child

    def _rebalance(self, entry: _Entry[T]) -> None:
        while (parent := entry.parent) is not None and parent.is_red:
            grand = parent.parent
            assert grand is not None
            is_left = grand.left is parent
            uncle = grand.right if is_left else grand.left
            if uncle is not None and uncle.is_red:
                parent.is_red = uncle.is_red = False
                grand.is_red = True
                entry = grand
                continue
            if entry is (parent.right if is_left else parent.left):
                self._rotate(parent, to_left=is_left)
                entry, parent = parent, entry
            parent.is_red = False
            grand.is_red = True
            self._rotate(grand, to_left=not is_left)
        assert self._root is not None
        self._root.is_red = False
