# cython: boundscheck=False, wraparound=False, cdivision=True
"""The hash by which Java's client chooses the partition of a key: murmur2, of one key and of a whole column of them.

One source runs interpreted and compiled, as in :mod:`barnabas.wire.record_codec`. It is part of what makes two clients
write the same key to the same partition, so it never changes. The client's partitioner calls it.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

COMPILED: bool = cython.compiled

SEED = 0x9747B28C
MULTIPLIER = 0x5BD1E995
MASK = 0xFFFFFFFF
POSITIVE = 0x7FFFFFFF


@cython.cfunc
@cython.exceptval(check=False)
def _hash(data: cython.const_uchar[::1], start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.ulonglong:
    """Of so many bytes from ``start`` on; products stay below 64 bits and are cut to 32."""
    end: cython.Py_ssize_t = start + (size & ~3)
    digest: cython.ulonglong = SEED ^ size
    word: cython.ulonglong
    while start < end:
        word = data[start + 3]  # widened before it is shifted: a byte at bit 31 would be a sign
        word = (word << 24) | data[start + 2] << 16 | data[start + 1] << 8 | data[start]
        start += 4
        word = word * MULTIPLIER & MASK
        word ^= word >> 24
        word = word * MULTIPLIER & MASK
        digest = (digest * MULTIPLIER & MASK) ^ word
    tail: cython.Py_ssize_t = size & 3
    if tail > 2:
        digest ^= data[start + 2] << 16
    if tail > 1:
        digest ^= data[start + 1] << 8
    if tail > 0:
        digest ^= data[start]
        digest = digest * MULTIPLIER & MASK
    digest ^= digest >> 13
    digest = digest * MULTIPLIER & MASK
    return digest ^ (digest >> 15)


def murmur2(data: Any) -> int:
    """The 32-bit hash that Java's client uses, as an unsigned number."""
    view: cython.const_uchar[::1] = data
    return _hash(view, 0, len(view))


def partitions(
    bounds: Any, data: Any, bits: Any, first_bit: cython.Py_ssize_t, partition_count: cython.Py_ssize_t, out: Any
) -> int:
    """The partition of each row of a column of keys, as Arrow keeps it; returns how many rows have a key.

    A row without one is left as it is in ``out``.
    """
    ends: cython.const_int[::1] = bounds
    keys: cython.const_uchar[::1] = data
    has_bits: cython.bint = bits is not None
    valid: cython.const_uchar[::1] = bits if has_bits else data
    chosen: cython.int[::1] = out
    row_count: cython.Py_ssize_t = len(ends) - 1
    if row_count < 0 or len(chosen) < row_count or partition_count < 1:
        raise ValueError("the columns have too few rows")
    if has_bits and 8 * len(valid) < first_bit + row_count:
        raise ValueError("the column has fewer validity bits than rows")
    found: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    for row in range(row_count):
        start: cython.Py_ssize_t = ends[row]
        size: cython.Py_ssize_t = ends[row + 1] - start
        if start < 0 or size < 0 or start + size > len(keys):
            raise ValueError(f"row {row} lies outside of its column")
        bit: cython.Py_ssize_t = first_bit + row
        if has_bits and not (valid[bit >> 3] >> (bit & 7)) & 1:
            continue
        chosen[row] = (_hash(keys, start, size) & POSITIVE) % partition_count
        found += 1
    return found
