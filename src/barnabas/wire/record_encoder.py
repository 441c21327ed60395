# cython: boundscheck=False, wraparound=False, cdivision=True
"""The hot loops that write records into a batch: from tuples and from columns.

One source runs interpreted and compiled, as in :mod:`barnabas.wire.record_codec`, which reads what is written here; the
compiled form writes through pointers, the interpreted one joins bytes. Only :mod:`barnabas.wire.records` and
:mod:`barnabas.wire.columns` call this.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise, repeat
from typing import Any

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.record_bytes import (
        address_of,
        body_size,
        check_timestamp,
        headers_size,
        plain_bytes,
        put_body,
        put_headers,
        put_varint,
        size_of,
    )
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy, memset

COMPILED: bool = cython.compiled

TIMESTAMP_MAX = 1 << 62  # on either side of zero, so that the difference of two needs no more than 64 bits
SMALL_VARINTS = 4096


def encode(records: Any, reserved_bytes: cython.Py_ssize_t) -> tuple[bytearray, int, int]:
    """``reserved_bytes`` zeros and the records behind them, with the first and the largest timestamp.

    A record is (timestamp, key, value, headers). There is at least one.
    """
    if not cython.compiled:
        return _join(records, reserved_bytes)
    buffer = bytearray()
    capacity: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t = reserved_bytes
    out: cython.p_uchar = cython.NULL
    base: cython.longlong = 0
    largest: cython.longlong = 0
    index: cython.Py_ssize_t
    for index, record in enumerate(records):
        time, key, value, headers = record
        key = plain_bytes(key)
        value = plain_bytes(value)
        timestamp: cython.longlong = time
        check_timestamp(timestamp)
        if index == 0:
            base = largest = timestamp
        elif timestamp > largest:
            largest = timestamp
        tail: cython.Py_ssize_t = headers_size(headers) if headers else 1
        body: cython.Py_ssize_t = body_size(timestamp - base, index, size_of(key), size_of(value)) + tail
        if position + 5 + body > capacity:
            # The first guess is that all records are like the first; later ones double.
            guess: cython.Py_ssize_t = 2 * capacity if capacity else min(len(records) * (body + 5), 1 << 20)
            capacity = max(position + 5 + body, guess + reserved_bytes)
            PyByteArray_Resize(buffer, capacity)
            out = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
        position = put_varint(out, position, body)
        position = put_body(
            out, position, timestamp - base, index, address_of(key), size_of(key), address_of(value), size_of(value)
        )
        if headers:
            position = put_headers(out, position, position + tail, headers)
        else:
            out[position] = 0
            position += 1
    memset(out, 0, reserved_bytes)
    PyByteArray_Resize(buffer, position)
    return buffer, base, largest


@cython.cclass
class _Column:
    """A column of bytes as Arrow keeps it, every cell checked before it is touched."""

    bounds: cython.const_int[::1]
    data: cython.const_uchar[::1]
    bits: cython.const_uchar[::1]
    first_bit: cython.Py_ssize_t
    row_count: cython.Py_ssize_t
    has_bits: cython.bint

    def __init__(self, bounds: Any, data: Any, bits: Any, first_bit: int) -> None:
        self.row_count = len(bounds) - 1
        self.has_bits = bits is not None
        self.bounds, self.data, self.first_bit = bounds, data, first_bit
        if bits is not None:
            self.bits = bits
            if 8 * len(bits) < first_bit + self.row_count:
                raise ValueError("the column has fewer validity bits than rows")

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-2, check=False)
    def size_of(self, row: cython.Py_ssize_t) -> cython.Py_ssize_t:
        start: cython.Py_ssize_t = self.bounds[row]
        end: cython.Py_ssize_t = self.bounds[row + 1]
        # Of null rows too: that bounds never fall is what keeps all rows together within their column's extent.
        if start < 0 or end < start or end > self.data.shape[0]:
            raise ValueError(f"row {row} lies outside of its column")
        bit: cython.Py_ssize_t = self.first_bit + row
        if self.has_bits and not (self.bits[bit >> 3] >> (bit & 7)) & 1:
            return -1
        return end - start


def encode_columns(
    timestamps: Any, keys: Any, values: Any, reserved_bytes: cython.Py_ssize_t, headers: Any = None
) -> tuple[bytearray, int, int]:
    """The same from columns of equal length, at least one row: ``timestamps`` is a view of int64, keys and values are
    as Arrow keeps them: (a view of int32 with an entry more than rows, the bytes, validity bits or None, the index of
    the first bit). So are ``headers``, each row of which is what ``record_headers.encode`` made."""
    if not cython.compiled:
        tails = repeat(()) if headers is None else _cells(*headers)
        rows = zip(timestamps, _cells(*keys), _cells(*values), tails, strict=False)
        return _join(list(rows), reserved_bytes)
    times: cython.const_longlong[::1] = timestamps
    key: _Column = _Column(*keys)
    value: _Column = _Column(*values)
    row_count: cython.Py_ssize_t = times.shape[0]
    if key.row_count != row_count or value.row_count != row_count:
        raise ValueError("the columns are not equally long")
    has_headers: cython.bint = headers is not None
    tail: _Column = _Column(*headers) if has_headers else key
    if tail.row_count != row_count:
        raise ValueError("the columns are not equally long")
    tail_size: cython.Py_ssize_t = 1
    row: cython.Py_ssize_t
    # Nothing is longer than its column, and 41 bytes hold all of a record that is neither key nor value.
    buffer = bytearray()
    room: cython.Py_ssize_t = _extent(key) + _extent(value) + (_extent(tail) if has_headers else 0)
    PyByteArray_Resize(buffer, reserved_bytes + 41 * row_count + room)
    out: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(buffer))
    memset(out, 0, reserved_bytes)
    position: cython.Py_ssize_t = reserved_bytes
    base: cython.longlong = times[0]
    largest: cython.longlong = base
    for row in range(row_count):
        timestamp: cython.longlong = times[row]
        check_timestamp(timestamp)
        if timestamp > largest:
            largest = timestamp
        key_size: cython.Py_ssize_t = key.size_of(row)
        value_size: cython.Py_ssize_t = value.size_of(row)
        if has_headers:
            tail_size = tail.size_of(row)
            if tail_size < 1:
                raise ValueError(f"row {row} has no headers, not even their number")
        position = put_varint(out, position, body_size(timestamp - base, row, key_size, value_size) + tail_size)
        position = put_body(
            out,
            position,
            timestamp - base,
            row,
            cython.address(key.data[key.bounds[row]]),
            key_size,
            cython.address(value.data[value.bounds[row]]),
            value_size,
        )
        if has_headers:
            memcpy(out + position, cython.address(tail.data[tail.bounds[row]]), tail_size)
        else:
            out[position] = 0
        position += tail_size
    PyByteArray_Resize(buffer, position)
    return buffer, base, largest


@cython.cfunc
def _extent(column: _Column) -> cython.Py_ssize_t:
    """The bytes that all rows of a column share; rows are checked one by one, so it need not be exact but enough."""
    return max(0, column.bounds[column.row_count] - column.bounds[0])


def _cells(bounds: Any, data: Any, bits: Any, first_bit: int) -> list[bytes | None]:
    """A column's cells as bytes and None."""
    plain = bytes(data)
    cells: list[bytes | None] = [plain[start:end] for start, end in pairwise(bounds)]
    if bits is not None:
        for index, bit in enumerate(range(first_bit, first_bit + len(cells))):
            if not bits[bit >> 3] >> (bit & 7) & 1:
                cells[index] = None
    return cells


def _join(records: Any, reserved_bytes: int) -> tuple[bytearray, int, int]:
    """:func:`encode` where nothing is compiled."""
    out = bytearray(reserved_bytes)
    base = largest = records[0][0]
    for index, (timestamp, key, value, headers) in enumerate(records):
        if timestamp > largest:
            largest = timestamp
        out += encoded_record(index, timestamp, timestamp - base, key, value, headers)
    return out, base, largest


def encoded_record(index: int, timestamp: int, delta: int, key: Any, value: Any, headers: Any) -> bytes:
    """One record with its length before it; ``headers`` may be bytes that are what they are to become."""
    if not -TIMESTAMP_MAX <= timestamp < TIMESTAMP_MAX:
        raise ValueError(f"{timestamp} is no timestamp in milliseconds")
    small = _small_varints()
    key, value = _plain(key), _plain(value)
    key_size, value_size = -1 if key is None else len(key), -1 if value is None else len(value)
    body = b"".join(
        (
            b"\x00",
            small[delta] if 0 <= delta < SMALL_VARINTS else _varint(delta),
            small[index] if index < SMALL_VARINTS else _varint(index),
            small[key_size] if key_size < SMALL_VARINTS else _varint(key_size),
            key or b"",
            small[value_size] if value_size < SMALL_VARINTS else _varint(value_size),
            value or b"",
            headers if type(headers) is bytes else _join_headers(headers) if headers else b"\x00",
        )
    )
    return _varint(len(body)) + body


def _plain(part: Any) -> Any:
    """A key or a value as bytes or None; what is neither bytes nor a view of bytes is a mistake of the caller."""
    return part if part is None or type(part) is bytes else bytes(memoryview(part))


def _join_headers(headers: Any) -> bytes:
    parts = [_varint(len(headers))]
    for name, content in headers:
        if not isinstance(name, str):
            raise TypeError(f"the name of a header is text, and not {name!r}")
        encoded = name.encode()
        content = _plain(content)
        parts += _varint(len(encoded)), encoded
        parts += (b"\x01",) if content is None else (_varint(len(content)), content)
    return b"".join(parts)


def _varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


@cache
def _small_varints() -> list[bytes]:
    """The varints from zero upwards; the last is that of -1, which is where a list looks for it."""
    return [*(_varint(value) for value in range(SMALL_VARINTS)), _varint(-1)]
