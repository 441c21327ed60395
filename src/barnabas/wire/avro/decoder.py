# cython: boundscheck=False, wraparound=False, cdivision=True
"""Avro data of one writer's schema into columns, every value checked, and every datum's end too.

A plan (``plan.py``) is a tree of steps. Those of single values are in ``values.py``; here are those that are made of
others, and the loop over the rows. One source runs interpreted and compiled, as ``columns.py`` does.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.avro.columns import Column, ListColumn, StructColumn
    from cython.cimports.barnabas.wire.avro.values import Limits, Step, size_of, varint
else:
    from barnabas.wire.avro.columns import Column, ListColumn, StructColumn
    from barnabas.wire.avro.values import Limits, Step, size_of, varint

COMPILED: bool = cython.compiled

DEPTH_MAX = 64  # levels of a type that contains itself
# Cells that a datum may have: an item of an array may take no byte at all.
CELLS_MIN = 4096
CELLS_PER_BYTE = 8


@cython.cclass
class ReadRecord(Step):
    """The fields of a record, in the writer's order; those that only the reader has come last, as defaults."""

    struct: StructColumn
    fields: tuple[Any, ...]

    def __init__(self, column: Any, fields: tuple[Step, ...]) -> None:
        self.struct, self.fields = column, fields

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        field: Step
        for field in self.fields:
            position = field.read(data, position, end, limits)
            if position < 0:
                return position
        if self.struct is not None:
            self.struct.add(True)
        return position


@cython.cclass
class ReadItems(Step):
    """An array, or with a ``key`` a map: blocks of items, the last of them empty."""

    list: ListColumn
    pairs: StructColumn
    key: Step
    item: Step
    width: cython.Py_ssize_t

    def __init__(self, column: Any, item: Step, *, width: int, key: Step | None = None) -> None:
        self.list, self.item, self.width, self.key = column, item, width, key
        self.pairs = None if column is None or key is None else column.items

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        raw: cython.ulonglong
        count: cython.longlong
        size: cython.Py_ssize_t
        block_end: cython.Py_ssize_t
        while True:
            raw, position = varint(data, position, end)
            if position > end:
                return -2
            count = (raw >> 1) ^ -(raw & 1)
            if count == 0:
                break
            block_end = -1
            if count < 0:
                size, position = size_of(data, position, end, -1)
                if position > end:
                    return -2
                block_end = position + size
                count = -count
            if count < 0 or count > limits.cells // self.width:
                return -8
            limits.cells -= count * self.width
            position = self.read_items(data, position, end, limits, count)
            if position < 0:
                return position
            if block_end >= 0 and position != block_end:
                return -10
        if self.list is not None:
            self.list.put()
        return position

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read_items(
        self,
        data: cython.p_const_uchar,
        position: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        limits: Limits,
        count: cython.longlong,
    ) -> cython.Py_ssize_t:
        left: cython.longlong = count
        while left > 0:
            left -= 1
            if self.key is not None:
                position = self.key.read(data, position, end, limits)
                if position < 0:
                    return position
            position = self.item.read(data, position, end, limits)
            if position < 0:
                return position
            if self.pairs is not None:
                self.pairs.add(True)
        return position


@cython.cclass
class ReadUnion(Step):
    branches: tuple[Any, ...]

    def __init__(self, branches: tuple[Step, ...]) -> None:
        self.branches = branches

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        raw: cython.ulonglong
        raw, position = varint(data, position, end)
        if position > end:
            return -2
        index: cython.longlong = (raw >> 1) ^ -(raw & 1)
        if index < 0 or index >= len(self.branches):
            return -5
        branch: Step = self.branches[index]
        return branch.read(data, position, end, limits)


@cython.cclass
class ReadMember(Step):
    """One branch of a union that is a struct with a member for each; the ``others`` get nulls."""

    struct: StructColumn
    member: Step
    others: tuple[Any, ...]

    def __init__(self, column: Any, member: Step, others: tuple[Any, ...]) -> None:
        self.struct, self.member, self.others = column, member, others

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        other: Column
        position = self.member.read(data, position, end, limits)
        if position < 0:
            return position
        for other in self.others:
            other.put_null()
        self.struct.add(True)
        return position


@cython.cclass
class ReadDefault(Step):
    """A field that the writer does not have: its default, read from bytes of its own."""

    step: Step
    content: bytes

    def __init__(self, step: Step, content: bytes) -> None:
        self.step, self.content = step, content

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        found: cython.Py_ssize_t = self.step.read(self.content, 0, len(self.content), limits)
        return position if found >= 0 else found


@cython.cclass
class Refuse(Step):
    """A branch of the writer's union for which the reader has no place."""

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        return -7


@cython.cclass
class SkipAgain(Step):
    """A type that contains itself, within itself: such types are only skipped. ``step`` is known later."""

    step: Step

    def __init__(self) -> None:
        self.step = None

    def set(self, step: Step) -> None:
        self.step = step

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        if limits.depth >= DEPTH_MAX:
            return -9
        limits.depth += 1
        position = self.step.read(data, position, end, limits)
        limits.depth -= 1
        return position


def decode(step: Step, column: Column, cells: tuple[Any, ...], head: cython.Py_ssize_t) -> list[tuple[int, int]]:
    """Reads the data of each row, after ``head`` bytes that are none of it, into ``column``.

    ``cells`` is a column of bytes: bounds, bytes, validity bits or None, the index of the first bit. Returns the rows
    that are malformed, with the reason of each; they and rows without data become nulls.
    """
    bounds: cython.const_int[::1] = cells[0]
    rows: cython.Py_ssize_t = len(bounds) - 1
    data: cython.p_const_uchar
    size: cython.Py_ssize_t = len(cells[1])
    if cython.compiled:
        view: cython.const_uchar[::1] = cells[1] if size else b"\0"
        data = cython.address(view[0])
    else:
        data = bytes(cells[1])
    has_bits: cython.bint = cells[2] is not None
    bits: cython.const_uchar[::1] = cells[2] if has_bits else b"\0"
    first_bit: cython.Py_ssize_t = cells[3]
    limits: Limits = Limits()
    malformed: list[tuple[int, int]] = []
    row: cython.Py_ssize_t
    for row in range(rows):
        start: cython.Py_ssize_t = bounds[row]
        end: cython.Py_ssize_t = bounds[row + 1]
        if start < 0 or start > end or end > size:
            raise ValueError("the bounds of a column of bytes are not in order")
        if has_bits and not bits[(first_bit + row) >> 3] >> ((first_bit + row) & 7) & 1:
            column.put_null()
            continue
        limits.cells = CELLS_MIN + CELLS_PER_BYTE * (end - start)
        limits.depth = 0
        before: cython.Py_ssize_t = column.rows
        position: cython.Py_ssize_t = -2 if head > end - start else step.read(data, start + head, end, limits)
        if position != end:
            column.cut(before)
            column.put_null()
            malformed.append((row, -11 if position >= 0 else position))
    return malformed
