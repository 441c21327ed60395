# cython: boundscheck=False, wraparound=False, cdivision=True
"""The hot loops over the records inside a batch: check them, read them, write them.

One source runs interpreted and compiled (Cython's pure-Python mode); where the two differ, ``cython.compiled`` says so.
"""

from __future__ import annotations

from array import array
from typing import Any

from barnabas.model.errors import CorruptBatch

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.named_tuple import new_record
    from cython.cimports.libc.string import memcpy

COMPILED: bool = cython.compiled

RECORD_BYTES_MIN = 7  # length, attributes, timestamp, offset, key, value, header count: a byte each
KEYLESS_MAX, LOCKED_RECORDS = 1000, 0xFFFF  # how many are named; records between two releases of the lock
INT64_MAX = (1 << 63) - 1
MICROSECONDS_MAX = INT64_MAX // 1000
_NO_SPOTS = array("i")


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.Py_ssize_t))
def _rest(
    data: cython.p_const_uchar,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    first: cython.ulonglong,
    last_shift: cython.int,
) -> Any:
    """A varint of more than one byte, whose first byte is ``first``: its raw value and the position after it."""
    raw: cython.ulonglong = first & 0x7F
    shift: cython.int = 7
    byte: cython.ulonglong
    if position < end:
        byte = data[position]
        if byte < 0x80:
            return raw | byte << 7, position + 1
    while position < end:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            # The last byte of a full-length varint has only the bits left that 32 or 64 of them need.
            if shift == last_shift and byte > (0x0F if last_shift == 28 else 0x01):
                break
            return raw, position
        if shift == last_shift:
            break
        shift += 7
    # Beyond the end, so that the next look at the bounds finds it.
    return 0, end + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t))
def _headers(data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Any:
    """The first header's position, how many there are, and where the last ends (beyond ``end`` if malformed)."""
    raw: cython.ulonglong = data[position]
    position += 1
    if raw > 0x7F:
        raw, position = _rest(data, position, end, raw, 28)
    count: cython.Py_ssize_t = (raw >> 1) ^ -(raw & 1)
    first: cython.Py_ssize_t = position
    if count < 0 or count > (end - position) // 2:
        return 0, 0, end + 1
    size: cython.Py_ssize_t
    index: cython.Py_ssize_t
    for index in range(2 * count):
        if position >= end:
            return 0, 0, end + 1
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = _rest(data, position, end, raw, 28)
        size = (raw >> 1) ^ -(raw & 1)
        # Keys and values alternate: a key is never null, a value may be.
        if size < -(index & 1) or size > end - position:
            return 0, 0, end + 1
        if size > 0:
            position += size
    return first, count, position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (
        cython.Py_ssize_t,
        cython.longlong,
        cython.longlong,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
        cython.Py_ssize_t,
    )
)
def _record(data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Any:
    """The record at ``position``: its end (-1 if it is malformed), its deltas, where key, value and headers are.

    Reading a first byte in place and calling only for a second one is what makes the interpreted form bearable.
    """
    raw: cython.ulonglong
    if position >= end:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    raw = data[position]
    position += 1
    if raw > 0x7F:
        raw, position = _rest(data, position, end, raw, 28)
    size: cython.Py_ssize_t = (raw >> 1) ^ -(raw & 1)
    # After its length a record has at least six bytes, so attributes and the timestamp's first byte can be read.
    if size < 6 or size > end - position:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    end = position + size
    raw = data[position + 1]
    position += 2
    if raw > 0x7F:
        raw, position = _rest(data, position, end, raw, 63)
    timestamp_delta: cython.longlong = (raw >> 1) ^ -(raw & 1)
    if position >= end:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    raw = data[position]
    position += 1
    if raw > 0x7F:
        raw, position = _rest(data, position, end, raw, 28)
    offset_delta: cython.longlong = (raw >> 1) ^ -(raw & 1)
    if position >= end or offset_delta < 0:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    raw = data[position]
    position += 1
    if raw > 0x7F:
        raw, position = _rest(data, position, end, raw, 28)
    key_size: cython.Py_ssize_t = (raw >> 1) ^ -(raw & 1)
    key: cython.Py_ssize_t = position
    if key_size > 0:
        position += key_size
    if position >= end or key_size < -1:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    raw = data[position]
    position += 1
    if raw > 0x7F:
        raw, position = _rest(data, position, end, raw, 28)
    value_size: cython.Py_ssize_t = (raw >> 1) ^ -(raw & 1)
    value: cython.Py_ssize_t = position
    if value_size > 0:
        position += value_size
    if position >= end or value_size < -1:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    header_count: cython.Py_ssize_t = 0
    headers: cython.Py_ssize_t = position
    if data[position] == 0:
        position += 1
    else:
        headers, header_count, position = _headers(data, position, end)
    if position != end:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    return end, timestamp_delta, offset_delta, key, key_size, value, value_size, headers, header_count


def check(
    payload: Any, record_count: cython.Py_ssize_t, base_timestamp: cython.longlong, keys_required: cython.bint
) -> tuple[int, int, bool, tuple[int, ...]]:
    """Largest timestamp delta, offset delta of the first record with it, whether offsets are dense, what has no key."""
    data: cython.p_const_uchar
    end: cython.Py_ssize_t = _sane_size(payload, record_count)
    if cython.compiled:
        view: cython.const_uchar[::1] = payload
        data = cython.address(view[0])
    else:
        data = bytes(payload)
    delta_min, delta_max = _delta_range(base_timestamp, INT64_MAX)
    largest: cython.longlong = delta_min
    largest_offset: cython.longlong = -1
    is_dense: cython.bint = True
    keyless: list[int] = []
    position: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(record_count):
        position, delta, offset, _, key_size, _, _, _, _ = _record(data, position, end)
        if position < 0 or delta < delta_min or delta > delta_max:
            raise CorruptBatch(f"record {index} of {record_count} is malformed")
        if offset != index:
            is_dense = False
        if delta > largest or largest_offset < 0:
            largest = delta
            largest_offset = offset
        if keys_required and key_size < 0 and len(keyless) < KEYLESS_MAX:
            keyless.append(index)
        if not (index + 1) & LOCKED_RECORDS:
            with cython.nogil: pass  # fmt: skip  # noqa: E701
    if position != end:
        raise CorruptBatch(f"{end - position} bytes follow the last of {record_count} records")
    return largest, largest_offset, is_dense, tuple(keyless)


@cython.locals(delta=cython.longlong, offset=cython.longlong, key=cython.Py_ssize_t, key_size=cython.Py_ssize_t)
@cython.locals(value=cython.Py_ssize_t, value_size=cython.Py_ssize_t)
def decode(payload: Any, header: Any, record_type: type, place: tuple[Any, ...] = ()) -> list[Any]:
    """The records as ``record_type``, a named tuple of ``place``, offset, timestamp, key, value and headers."""
    data: cython.p_const_uchar
    record_count: cython.Py_ssize_t = header.record_count
    end: cython.Py_ssize_t = _sane_size(payload, record_count)
    records: list[Any] = []
    assert record_type.__basicsize__ == tuple.__basicsize__, "a named tuple has room for its fields only"
    if cython.compiled:
        view: cython.const_uchar[::1] = payload
        data = cython.address(view[0])
    else:
        data = bytes(payload)
    base_offset: cython.longlong = header.base_offset
    base_timestamp: cython.longlong = header.base_timestamp
    delta_min, delta_max = _delta_range(base_timestamp, INT64_MAX)
    uses_append_time: cython.bint = header.uses_append_time
    timestamp: Any = header.max_timestamp if uses_append_time else base_timestamp
    last_delta: cython.longlong = 0
    position: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(record_count):
        position, delta, offset, key, key_size, value, value_size, headers, header_count = _record(data, position, end)
        if position < 0 or delta < delta_min or delta > delta_max:
            raise CorruptBatch(f"record {index} of {record_count} is malformed")
        if delta != last_delta and not uses_append_time:
            last_delta = delta
            timestamp = base_timestamp + delta
        key_bytes = None if key_size < 0 else data[key : key + key_size]
        value_bytes = None if value_size < 0 else data[value : value + value_size]
        pairs = () if header_count == 0 else _header_pairs(data, headers, header_count, end)
        if cython.compiled:
            record = new_record(record_type, place, base_offset + offset, timestamp, key_bytes, value_bytes, pairs)
        else:
            record = tuple.__new__(
                record_type, (*place, base_offset + offset, timestamp, key_bytes, value_bytes, pairs)
            )
        records.append(record)
    if position != end:
        raise CorruptBatch(f"{end - position} bytes follow the last of {record_count} records")
    return records


@cython.cclass
class BytesColumn:
    """Writable buffers in Arrow's layout of binary: int32 bounds (an entry more than rows), bytes, validity bits.

    All bits are set when it begins; the rows of a column are put one after the other.
    """

    bounds: cython.int[::1]
    data: cython.uchar[::1]
    bits: cython.uchar[::1]
    end: cython.Py_ssize_t

    def __init__(self, bounds: Any, data: Any, bits: Any) -> None:
        self.bounds, self.data, self.bits = bounds, data, bits
        self.bounds[0] = 0
        self.end = 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=False)
    def put(
        self, row: cython.Py_ssize_t, source: cython.p_const_uchar, start: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.int:
        end: cython.Py_ssize_t = self.end
        if row + 1 >= len(self.bounds) or row >= 8 * len(self.bits) or size > len(self.data) - end:
            raise ValueError("the column is full")
        if size > 0:
            if cython.compiled:
                memcpy(cython.address(self.data[end]), source + start, size)
            else:
                self.data[end : end + size] = source[start : start + size]
            end += size
            self.end = end
        elif size < 0:
            self.bits[row >> 3] &= 0xFF ^ (1 << (row & 7))
        self.bounds[row + 1] = end
        return 0


@cython.locals(delta=cython.longlong, offset=cython.longlong)
def fill(
    payload: Any,
    header: Any,
    first_offset: cython.longlong,
    end_offset: cython.longlong,
    columns: tuple[Any, Any, BytesColumn, BytesColumn],
    row: cython.Py_ssize_t,
    spots: Any = None,
) -> int:
    """Decodes from ``first_offset`` up to ``end_offset`` into columns (int64 offsets, int64 timestamps in microseconds,
    keys, values) from ``row`` on; returns the row after the last. ``spots`` gets where the headers of a row are and how
    many, for ``record_headers``."""
    data: cython.p_const_uchar
    record_count: cython.Py_ssize_t = header.record_count
    end: cython.Py_ssize_t = _sane_size(payload, record_count)
    if cython.compiled:
        view: cython.const_uchar[::1] = payload
        data = cython.address(view[0])
    else:
        data = bytes(payload)
    offsets: cython.longlong[::1] = columns[0]
    timestamps: cython.longlong[::1] = columns[1]
    keys: BytesColumn = columns[2]
    values: BytesColumn = columns[3]
    has_spots: cython.bint = spots is not None
    places: cython.int[::1] = spots if has_spots else _NO_SPOTS
    rows_max: cython.Py_ssize_t = min(len(offsets), len(timestamps))
    if row < 0 or row + record_count > (min(rows_max, len(places) // 2) if has_spots else rows_max):
        raise ValueError("the columns have too few rows")
    base_offset: cython.longlong = header.base_offset
    # With append time the deltas lie in the batch still, but mean nothing.
    uses_append_time: cython.bint = header.uses_append_time
    base_timestamp: cython.longlong = header.max_timestamp if uses_append_time else header.base_timestamp
    delta_min, delta_max = _delta_range(base_timestamp, MICROSECONDS_MAX)
    position: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(record_count):
        position, delta, offset, key, key_size, value, value_size, headers, header_count = _record(data, position, end)
        if uses_append_time:
            delta = 0
        if position < 0 or delta < delta_min or delta > delta_max:
            raise CorruptBatch(f"record {index} of {record_count} is malformed")
        offset += base_offset
        if first_offset <= offset < end_offset:
            offsets[row] = offset
            timestamps[row] = 1000 * (base_timestamp + delta)
            keys.put(row, data, key, key_size)
            values.put(row, data, value, value_size)
            if has_spots:
                places[2 * row] = headers
                places[2 * row + 1] = header_count
            row += 1
    if position != end:
        raise CorruptBatch(f"{end - position} bytes follow the last of {record_count} records")
    return row


@cython.cfunc
def _header_pairs(
    data: cython.p_const_uchar, position: cython.Py_ssize_t, count: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> tuple[Any, ...]:
    """The headers that :func:`_headers` has found sound; as in Java, a key's bad bytes become U+FFFD."""
    pairs: list[Any] = []
    raw: cython.ulonglong
    size: cython.Py_ssize_t
    for _ in range(count):
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = _rest(data, position, end, raw, 28)
        size = raw >> 1
        name = data[position : position + size].decode("utf-8", "replace")
        position += size
        raw = data[position]
        position += 1
        if raw > 0x7F:
            raw, position = _rest(data, position, end, raw, 28)
        size = raw >> 1
        if raw & 1:
            pairs.append((name, None))
        else:
            pairs.append((name, data[position : position + size]))
            position += size
    return tuple(pairs)


@cython.cfunc
@cython.returns((cython.longlong, cython.longlong))
def _delta_range(base: cython.longlong, most: cython.longlong) -> Any:
    """The timestamp deltas that, added to ``base``, stay within ``most`` on either side of zero."""
    return (-most - base if base < 0 else -most), (most - base if base > 0 else most)


@cython.cfunc
def _sane_size(payload: Any, record_count: cython.Py_ssize_t) -> object:
    """The payload's size, once it can hold so many records: nothing is allocated for a count that is a lie."""
    size = len(payload)
    if record_count < 0 or record_count > size // RECORD_BYTES_MIN:
        raise CorruptBatch(f"{size} bytes cannot hold {record_count} records")
    if size and not record_count:
        raise CorruptBatch(f"{size} bytes follow the last of no records")
    return size
