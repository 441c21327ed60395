# cython: boundscheck=False, wraparound=False, cdivision=True
"""The hot loops between the headers of records and the columns that Arrow keeps of them, without an object per header.

One source runs interpreted and compiled, as in :mod:`barnabas.wire.record_codec`, which finds where in a record its
headers are, and :mod:`barnabas.wire.record_encoder`, which puts what is written here into records. Only
:mod:`barnabas.wire.columns` calls this. Columns are plain views, checked before they are touched.
"""

from __future__ import annotations

from typing import Any

from barnabas.model.errors import CorruptBatch

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

COMPILED: bool = cython.compiled

VARINT_BYTES_MAX = 5


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _length(data: cython.const_uchar[::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Any:
    """A length and the position after it, which lies beyond ``end`` if there is none."""
    raw: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while position < end and shift < 35:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, end + 1


def count(spots: Any, rows: cython.Py_ssize_t) -> int:
    """How many headers the rows have together, of whose positions and numbers ``spots`` has one after the other."""
    places: cython.const_int[::1] = spots
    if rows < 0 or 2 * rows > len(places):
        raise ValueError("the columns have too few rows")
    total: cython.longlong = 0
    row: cython.Py_ssize_t
    for row in range(rows):
        total += places[2 * row + 1]
    return total


@cython.locals(size=cython.longlong)
def fill(
    payload: Any,
    spots: Any,
    row: cython.Py_ssize_t,
    end_row: cython.Py_ssize_t,
    columns: tuple[Any, Any, Any, Any, Any, Any, Any],
    count: cython.Py_ssize_t,
) -> int:
    """The headers of the rows, whose positions and numbers are in ``spots`` in turn; returns how many there are by now.

    ``columns`` are the list's bounds and bits, the bounds and bytes of names, and the bounds, bytes and bits of values;
    all bits are set, and the first entry of each bounds is.
    """
    data: cython.const_uchar[::1] = payload
    places: cython.const_int[::1] = spots
    lists: cython.int[::1] = columns[0]
    list_bits: cython.uchar[::1] = columns[1]
    name_bounds: cython.int[::1] = columns[2]
    names: cython.uchar[::1] = columns[3]
    value_bounds: cython.int[::1] = columns[4]
    values: cython.uchar[::1] = columns[5]
    value_bits: cython.uchar[::1] = columns[6]
    end: cython.Py_ssize_t = len(data)
    room: cython.Py_ssize_t = min(len(name_bounds), len(value_bounds), 8 * len(value_bits) + 1) - 1
    rows_max: cython.Py_ssize_t = min(len(places) // 2, len(lists) - 1, 8 * len(list_bits))
    if row < 0 or end_row > rows_max or count < 0 or count > room:
        raise ValueError("the columns have too few rows")
    name_end: cython.Py_ssize_t = name_bounds[count]
    value_end: cython.Py_ssize_t = value_bounds[count]
    position: cython.Py_ssize_t
    left: cython.Py_ssize_t
    while row < end_row:
        position = places[2 * row]
        left = places[2 * row + 1]
        if left == 0:
            list_bits[row >> 3] &= 0xFF ^ (1 << (row & 7))
        elif position < 0 or left < 0 or left > room - count:
            raise CorruptBatch(f"{left} headers at {position} of {end} bytes")
        while left > 0:
            size, position = _length(data, position, end)
            if size < 0 or size > end - position or size > len(names) - name_end:
                raise CorruptBatch("a header's name lies outside of its record")
            _copy(names, name_end, data, position, size)
            position += size
            name_end += size
            size, position = _length(data, position, end)
            if size < -1 or size > end - position or size > len(values) - value_end:
                raise CorruptBatch("a header's value lies outside of its record")
            if size < 0:
                value_bits[count >> 3] &= 0xFF ^ (1 << (count & 7))
            else:
                _copy(values, value_end, data, position, size)
                position += size
                value_end += size
            count += 1
            name_bounds[count] = name_end
            value_bounds[count] = value_end
            left -= 1
        row += 1
        lists[row] = count
    return count


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _copy(
    target: cython.uchar[::1],
    start: cython.Py_ssize_t,
    source: cython.const_uchar[::1],
    position: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.int:
    if size > 0:
        if cython.compiled:
            memcpy(cython.address(target[start]), cython.address(source[position]), size)
        else:
            target[start : start + size] = source[position : position + size]
    return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put(out: cython.uchar[::1], position: cython.Py_ssize_t, length: cython.longlong) -> cython.Py_ssize_t:
    raw: cython.ulonglong = 1 if length < 0 else 2 * length
    while raw > 0x7F:
        out[position] = (raw & 0x7F) | 0x80
        position += 1
        raw >>= 7
    out[position] = raw
    return position + 1


@cython.cfunc
@cython.exceptval(-1, check=False)
def _put_cell(
    target: cython.uchar[::1],
    position: cython.Py_ssize_t,
    bounds: cython.const_int[::1],
    data: cython.const_uchar[::1],
    index: cython.Py_ssize_t,
    is_null: cython.bint,
) -> cython.Py_ssize_t:
    """A name or a value with its length before it; returns the position after it."""
    start: cython.Py_ssize_t = bounds[index]
    size: cython.Py_ssize_t = bounds[index + 1] - start
    if start < 0 or size < 0 or start + size > len(data):
        raise ValueError(f"header {index} lies outside of its column")
    if is_null:
        size = -1
    if len(target) - position < size + VARINT_BYTES_MAX:
        raise ValueError("there is no room for the headers")
    position = _put(target, position, size)
    if size > 0:
        _copy(target, position, data, start, size)
        position += size
    return position


def encode(lists: Any, list_bits: Any, names: Any, values: Any, out: Any, bounds: Any) -> int:
    """What follows the value of each record, one after the other, in ``out``; where each ends goes to ``bounds``.

    ``lists`` are int32 bounds, ``list_bits`` validity bits and the index of the first, or None; names and values are
    (bounds, bytes, bits or None, the index of the first bit). Returns how many bytes were written. ``out`` has room for
    five bytes for each row, ten for each header, and the names and values themselves.
    """
    rows: cython.const_int[::1] = lists
    name_bounds: cython.const_int[::1] = names[0]
    name_data: cython.const_uchar[::1] = names[1]
    value_bounds: cython.const_int[::1] = values[0]
    value_data: cython.const_uchar[::1] = values[1]
    has_list_bits: cython.bint = list_bits is not None
    has_value_bits: cython.bint = values[2] is not None
    list_valid: cython.const_uchar[::1] = list_bits[0] if has_list_bits else name_data
    list_first: cython.Py_ssize_t = list_bits[1] if has_list_bits else 0
    value_valid: cython.const_uchar[::1] = values[2] if has_value_bits else name_data
    value_first: cython.Py_ssize_t = values[3]
    target: cython.uchar[::1] = out
    ends: cython.int[::1] = bounds
    total: cython.Py_ssize_t = min(len(name_bounds), len(value_bounds)) - 1
    row_count: cython.Py_ssize_t = len(rows) - 1
    if len(ends) <= row_count or row_count < 0 or total < 0:
        raise ValueError("the columns have too few rows")
    if has_list_bits and 8 * len(list_valid) < list_first + row_count:
        raise ValueError("the headers have fewer validity bits than rows")
    if has_value_bits and 8 * len(value_valid) < value_first + total:
        raise ValueError("the headers have fewer validity bits than values")
    position: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    index: cython.Py_ssize_t
    bit: cython.Py_ssize_t
    is_null: cython.bint
    ends[0] = 0
    for row in range(row_count):
        first: cython.Py_ssize_t = rows[row]
        last: cython.Py_ssize_t = rows[row + 1]
        if first < 0 or last < first or last > total:
            raise ValueError(f"the headers of row {row} lie outside of their column")
        bit = list_first + row
        if has_list_bits and not (list_valid[bit >> 3] >> (bit & 7)) & 1:
            last = first
        if len(target) - position < VARINT_BYTES_MAX:
            raise ValueError("there is no room for the headers")
        position = _put(target, position, last - first)
        for index in range(first, last):
            position = _put_cell(target, position, name_bounds, name_data, index, False)
            bit = value_first + index
            is_null = has_value_bits and not (value_valid[bit >> 3] >> (bit & 7)) & 1
            position = _put_cell(target, position, value_bounds, value_data, index, is_null)
        ends[row + 1] = position
    return position
