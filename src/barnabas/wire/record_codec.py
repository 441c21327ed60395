# cython: boundscheck=False, wraparound=False, cdivision=True
"""The hot loops over the records inside a batch: check them, read them, write them.

One source runs interpreted and compiled (Cython's pure-Python mode); where the two differ, ``cython.compiled`` says so.
Headers of batches, codecs and checksums live elsewhere; only :mod:`barnabas.wire.records` and
:mod:`barnabas.wire.columns` call this.
"""

from __future__ import annotations

from typing import Any

from barnabas.model.errors import CorruptBatch

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

COMPILED: bool = cython.compiled

RECORD_BYTES_MIN = 7  # length, attributes, timestamp, offset, key, value, header count: a byte each
KEYLESS_MAX = 1000
TIMESTAMP_MAX = (1 << 63) - 1
TIMESTAMP_MIN = -(1 << 63)


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
    if record_count == 0:
        return 0, 0, True, ()
    if cython.compiled:
        view: cython.const_uchar[::1] = payload
        data = cython.address(view[0])
    else:
        data = bytes(payload)
    lowest, highest = _timestamp_deltas(base_timestamp)
    delta_min: cython.longlong = lowest
    delta_max: cython.longlong = highest
    largest: cython.longlong = lowest
    largest_offset: cython.longlong = 0
    is_dense: cython.bint = True
    keyless: list[int] = []
    position: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(record_count):
        position, timestamp, offset, _, key_size, _, _, _, _ = _record(data, position, end)
        if position < 0 or timestamp < delta_min or timestamp > delta_max:
            raise CorruptBatch(f"record {index} of {record_count} is malformed")
        if offset != index:
            is_dense = False
        if timestamp > largest or index == 0:
            largest = timestamp
            largest_offset = offset
        if keys_required and key_size < 0 and len(keyless) < KEYLESS_MAX:
            keyless.append(index)
    if position != end:
        raise CorruptBatch(f"{end - position} bytes follow the last of {record_count} records")
    return largest, largest_offset, is_dense, tuple(keyless)


def decode(
    payload: Any,
    record_count: cython.Py_ssize_t,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    append_time: object,
    record_type: Any,
) -> list[Any]:
    """The records as ``record_type`` (offset, timestamp, key, value, headers)."""
    data: cython.p_const_uchar
    end: cython.Py_ssize_t = _sane_size(payload, record_count)
    records: list[Any] = []
    if record_count == 0:
        return records
    if cython.compiled:
        view: cython.const_uchar[::1] = payload
        data = cython.address(view[0])
    else:
        data = bytes(payload)
    lowest, highest = _timestamp_deltas(base_timestamp)
    delta_min: cython.longlong = lowest
    delta_max: cython.longlong = highest
    uses_append_time: cython.bint = append_time is not None
    position: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t
    for index in range(record_count):
        position, delta, offset, key, key_size, value, value_size, headers, header_count = _record(data, position, end)
        if position < 0 or delta < delta_min or delta > delta_max:
            raise CorruptBatch(f"record {index} of {record_count} is malformed")
        fields = (
            base_offset + offset,
            append_time if uses_append_time else base_timestamp + delta,
            None if key_size < 0 else data[key : key + key_size],
            None if value_size < 0 else data[value : value + value_size],
            () if header_count == 0 else _header_pairs(data, headers, header_count, end),
        )
        records.append(_new(record_type, fields))
    if position != end:
        raise CorruptBatch(f"{end - position} bytes follow the last of {record_count} records")
    return records


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
@cython.inline
def _new(record_type: Any, fields: tuple[Any, ...]) -> Any:
    return tuple.__new__(record_type, fields)


@cython.cfunc
def _timestamp_deltas(base_timestamp: Any) -> tuple[int, int]:
    """The deltas that leave a timestamp within 64 bits."""
    base = int(base_timestamp)
    return max(TIMESTAMP_MIN, TIMESTAMP_MIN - base), min(TIMESTAMP_MAX, TIMESTAMP_MAX - base)


@cython.cfunc
def _sane_size(payload: Any, record_count: cython.Py_ssize_t) -> object:
    """The payload's size, once it can hold so many records: nothing is allocated for a count that is a lie."""
    size = len(payload)
    if record_count < 0 or record_count > size // RECORD_BYTES_MIN:
        raise CorruptBatch(f"{size} bytes cannot hold {record_count} records")
    if size and not record_count:
        raise CorruptBatch(f"{size} bytes follow the last of no records")
    return size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put(out: cython.p_uchar, position: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    """Writes one varint and returns the position after it."""
    raw: cython.ulonglong = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out[position] = (raw & 0x7F) | 0x80
        position += 1
        raw >>= 7
    out[position] = raw
    return position + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _size(value: cython.longlong) -> cython.Py_ssize_t:
    raw: cython.ulonglong = (value << 1) ^ (value >> 63)
    size: cython.Py_ssize_t = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


def encode(records: Any, reserved_bytes: cython.Py_ssize_t) -> tuple[bytearray, int, int]:
    """``reserved_bytes`` zeros and the records behind them, with the first and the largest timestamp."""
    base: cython.longlong = records[0][0]
    largest: cython.longlong = base
    buffer = bytearray(reserved_bytes)
    index: cython.Py_ssize_t = 0
    for index, (timestamp, key, value, headers) in enumerate(records):
        body = bytearray(1)
        body += _varint(timestamp - base)
        body += _varint(index)
        for part in (key, value):
            if part is None:
                body += b"\x01"
            else:
                body += _varint(len(part))
                body += part
        body += _varint(len(headers))
        for name, content in headers:
            encoded = name.encode()
            body += _varint(len(encoded))
            body += encoded
            if content is None:
                body += b"\x01"
            else:
                body += _varint(len(content))
                body += content
        buffer += _varint(len(body))
        buffer += body
        if timestamp > largest:
            largest = timestamp
    return buffer, base, largest


@cython.cfunc
def _varint(value: cython.longlong) -> bytes:
    raw: cython.ulonglong = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)
