# cython: boundscheck=False, wraparound=False, cdivision=True
"""How the Avro decoder reads single values: numbers, booleans, text, bytes, enums and decimals, each into a column.

A step reads one value of the writer's schema, checks it, and puts it into a column of the reader's, or skips it if it
has no column. It returns the position after the value, or the negative number of a reason. ``decoder.py`` has the
steps that are made of others. One source runs interpreted and compiled; ``values.pxd`` declares the compiled form.
"""

from __future__ import annotations

import struct
from typing import Any

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.avro.columns import (
        BytesColumn,
        DecimalColumn,
        DoubleColumn,
        LongColumn,
    )
    from cython.cimports.libc.string import memcpy
else:
    from barnabas.wire.avro.columns import BytesColumn, DecimalColumn, DoubleColumn, LongColumn

DECIMAL_BYTES = 16

REASONS = {
    -2: "the data ends too early",
    -3: "a number is out of range",
    -4: "a string is not UTF-8",
    -5: "a union has no such branch",
    -6: "an enum has no such symbol",
    -7: "the reader's schema has no place for this value",
    -8: "an array or a map has too many items",
    -9: "the data is nested too deeply",
    -10: "a block of items does not end where its size says",
    -11: "bytes follow the data",
    -12: "a boolean is neither 0 nor 1",
    -13: "a decimal has more digits than its schema allows",
}


@cython.cclass
class Limits:
    """What is left to the datum that is being read: cells (items, times the columns of an item) and levels of depth."""

    def __init__(self) -> None:
        self.cells = self.depth = 0


@cython.cfunc
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.Py_ssize_t))
def varint(data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Any:
    """The raw value of a varint and the position after it, which is beyond ``end`` if it is malformed."""
    raw: cython.ulonglong = 0
    shift: cython.int = 0
    byte: cython.ulonglong
    while position < end:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if shift == 63 and byte > 1:
                break
            return raw, position
        if shift == 63:
            break
        shift += 7
    return 0, end + 1


@cython.cclass
class Step:
    """Reads nothing: the value is a null, and the column gets one."""

    def __init__(self, column: Any = None) -> None:
        self.column = column

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        if self.column is not None:
            self.column.put_null()
        return position


@cython.cclass
class ReadInteger(Step):
    """An int or a long from ``low`` to ``high``, times ``scale``: dates and times too."""

    longs: LongColumn
    doubles: DoubleColumn
    low: cython.longlong
    high: cython.longlong
    scale: cython.longlong

    def __init__(self, column: Any, low: int, high: int, scale: int = 1) -> None:
        self.longs = column if isinstance(column, LongColumn) else None
        self.doubles = column if isinstance(column, DoubleColumn) else None
        self.low, self.high, self.scale = low, high, scale

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        raw: cython.ulonglong
        raw, position = varint(data, position, end)
        if position > end:
            return -2
        number: cython.longlong = (raw >> 1) ^ -(raw & 1)
        if number < self.low or number > self.high:
            return -3
        if self.longs is not None:
            self.longs.put(number * self.scale)
        elif self.doubles is not None:
            self.doubles.put(number)
        return position


@cython.cclass
class ReadBoolean(Step):
    longs: LongColumn

    def __init__(self, column: Any) -> None:
        self.longs = column

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        if position >= end:
            return -2
        if data[position] > 1:
            return -12
        if self.longs is not None:
            self.longs.put(data[position])
        return position + 1


@cython.cclass
class ReadReal(Step):
    """A float of 4 bytes, or a double of 8."""

    doubles: DoubleColumn
    size: cython.Py_ssize_t

    def __init__(self, column: Any, size: int) -> None:
        self.doubles, self.size = column, size

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        single: cython.float = 0
        double: cython.double = 0
        if self.size > end - position:
            return -2
        if self.doubles is not None:
            if cython.compiled:
                if self.size == 4:
                    memcpy(cython.address(single), data + position, 4)
                    double = single
                else:
                    memcpy(cython.address(double), data + position, 8)
            else:
                double = struct.unpack_from("<f" if self.size == 4 else "<d", data, position)[0]
            self.doubles.put(double)
        return position + self.size


@cython.cclass
class ReadEnum(Step):
    """The index of a symbol: the writer's becomes the reader's, or is refused if that is -1."""

    longs: LongColumn
    indexes: tuple[Any, ...]

    def __init__(self, column: Any, indexes: tuple[int, ...]) -> None:
        self.longs, self.indexes = column, indexes

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
        if index < 0 or index >= len(self.indexes):
            return -6
        found: cython.longlong = self.indexes[index]
        if found < 0:
            return -7
        if self.longs is not None:
            self.longs.put(found)
        return position


@cython.cclass
class ReadBytes(Step):
    """Bytes, text (which must be UTF-8), or with a ``size`` a fixed."""

    bytes: BytesColumn
    size: cython.Py_ssize_t
    is_text: cython.bint

    def __init__(self, column: Any, *, size: int = -1, is_text: bool = False) -> None:
        self.bytes, self.size, self.is_text = column, size, is_text

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        size: cython.Py_ssize_t
        size, position = size_of(data, position, end, self.size)
        if position > end:
            return -2
        if self.is_text and not _is_utf8(data, position, size):
            return -4
        if self.bytes is not None:
            self.bytes.put(data, position, size)
        return position + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t))
def size_of(
    data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, fixed: cython.Py_ssize_t
) -> Any:
    """The size of bytes and where they begin, which is beyond ``end`` if they do not end before it."""
    raw: cython.ulonglong
    if fixed < 0:
        raw, position = varint(data, position, end)
        if position > end:
            return 0, end + 1
        left: cython.ulonglong = end - position
        if raw & 1 or raw >> 1 > left:
            return 0, end + 1
        fixed = raw >> 1
    elif fixed > end - position:
        return 0, end + 1
    return fixed, position


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_utf8(data: cython.p_const_uchar, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
    index: cython.Py_ssize_t
    if cython.compiled:
        joined: cython.uchar = 0
        for index in range(start, start + size):
            joined |= data[index]
        if joined < 0x80:
            return 1
    try:
        data[start : start + size].decode("utf-8")
    except UnicodeDecodeError:
        return 0
    return 1


@cython.cclass
class ReadDecimal(Step):
    """A decimal, as bytes or with a ``size`` as a fixed; ``low`` and ``high`` are 16 bytes, the highest first."""

    decimals: DecimalColumn
    size: cython.Py_ssize_t
    low: bytes
    high: bytes

    def __init__(self, column: Any, size: int, low: bytes, high: bytes) -> None:
        self.decimals, self.size, self.low, self.high = column, size, low, high

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def read(
        self, data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t, limits: Limits
    ) -> cython.Py_ssize_t:
        size: cython.Py_ssize_t
        size, position = size_of(data, position, end, self.size)
        if position > end:
            return -2
        end = position + size
        is_negative: cython.bint = size > 0 and data[position] > 0x7F
        filler: cython.int = 0xFF if is_negative else 0
        while size > DECIMAL_BYTES:
            if data[position] != filler or (data[position + 1] > 0x7F) != is_negative:
                return -13
            position += 1
            size -= 1
        if _is_beyond(data, position, size, self.low if is_negative else self.high, is_negative):
            return -13
        if self.decimals is not None:
            self.decimals.put(data, position, size)
        return end


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_beyond(
    data: cython.p_const_uchar,
    position: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    bound: bytes,
    is_negative: cython.bint,
) -> cython.int:
    """Whether a number of at most 16 bytes is farther from zero than ``bound``, of the same sign."""
    missing: cython.Py_ssize_t = DECIMAL_BYTES - size
    index: cython.Py_ssize_t
    for index in range(DECIMAL_BYTES):
        digit: cython.int = (0xFF if is_negative else 0) if index < missing else data[position + index - missing]
        limit: cython.int = bound[index]
        if digit != limit:
            return digit < limit if is_negative else digit > limit
    return 0
