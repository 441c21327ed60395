# cython: boundscheck=False, wraparound=False, cdivision=True
"""The records of one batch as they come, one by one: each is written at once, and no object is kept for it.

One source runs interpreted and compiled, as in :mod:`barnabas.wire.record_encoder`, which writes records that are all
there already. The producer's batches are built here, and found by whoever has a record that needs nobody's decision;
headers of batches, codecs and checksums live elsewhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from barnabas.wire import record_encoder

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.named_tuple import new_pair
    from cython.cimports.barnabas.wire.record_bytes import (
        address_of,
        body_size,
        check_timestamp,
        headers_bytes,
        plain_bytes,
        put_body,
        put_varint,
        size_of,
        varint_size,
    )
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy, memset

COMPILED: bool = cython.compiled

NO_ROOM = -1


def unfilled(size: int) -> bytearray:
    """Bytes to be overwritten by whoever asks, who hands on none that he has not: zeros take as long as the reading."""
    buffer = bytearray(0 if cython.compiled else size)
    if cython.compiled:
        PyByteArray_Resize(buffer, size)
    return buffer


@cython.cclass
class RecordBuilder:
    """``append`` answers with a record's place in the batch, or -1 if it has no room or is closed.

    Where it is compiled, an append of bytes without headers cannot be interrupted by another thread: it allocates no
    object that the collector knows and runs none of Python's code.
    """

    _buffer: bytearray
    _times: list[int]  # each timestamp that differs from the one before it …
    _starts: list[int]  # … and the first record that has it
    _reserved_bytes: cython.Py_ssize_t
    _size_bytes_max: cython.Py_ssize_t
    _capacity: cython.Py_ssize_t
    _position: cython.Py_ssize_t
    _count: cython.Py_ssize_t
    _base: cython.longlong
    _largest: cython.longlong
    _last: cython.longlong
    _is_open: cython.bint

    def __init__(self, reserved_bytes: int, size_bytes_max: int) -> None:
        """``reserved_bytes`` are left free before the first record, which is taken however large it is."""
        self._buffer = bytearray(0 if cython.compiled else reserved_bytes)
        self._times, self._starts = [], []
        self._reserved_bytes = self._position = reserved_bytes
        self._size_bytes_max = size_bytes_max
        self._capacity = self._count = 0
        self._base = self._largest = self._last = 0
        self._is_open = True

    def __len__(self) -> int:
        return self._count

    @property
    def is_open(self) -> bool:
        return bool(self._is_open)

    @property
    def size_bytes(self) -> int:
        return self._position

    def close(self) -> None:
        """Nothing is appended any more."""
        self._is_open = False

    @cython.ccall
    def append(self, timestamp: cython.longlong, key: Any, value: Any, headers: Any) -> cython.Py_ssize_t:
        if not cython.compiled:
            return self._append_slowly(timestamp, key, value, headers)
        # Whatever may run Python's code comes before the first look at the state: another record may come meanwhile.
        key = plain_bytes(key)
        value = plain_bytes(value)
        tail: Any = headers_bytes(headers) if headers else None
        check_timestamp(timestamp)
        if not self._is_open or not self._put(timestamp, key, value, tail):
            return -1
        return self._count - 1

    def promise(self, kind: type, owner: Any, timestamp: cython.longlong, key: Any, value: Any, headers: Any) -> Any:
        """The same as a named tuple ``kind`` of the owner and the record's place; None instead of -1."""
        number: cython.Py_ssize_t = self.append(timestamp, key, value, headers)
        if number < 0:
            return None
        if cython.compiled:
            return new_pair(kind, owner, number)
        return tuple.__new__(kind, (owner, number))

    def extend(self, pairs: list[Any], first: cython.Py_ssize_t, timestamp: cython.longlong) -> tuple[int, int]:
        """Append the pairs from ``first`` on, as long as they are tuples of no key and a value of bytes and have room.

        Answers with the place of the first and how many there are.
        """
        index: cython.Py_ssize_t = first
        end: cython.Py_ssize_t = len(pairs)
        start: cython.Py_ssize_t = self._count
        if cython.compiled:
            check_timestamp(timestamp)
        while index < end:
            pair = pairs[index]
            if type(pair) is not tuple:
                break
            key, value = pair
            if key is not None or not (value is None or type(value) is bytes):
                break
            if not cython.compiled:
                if self._append_slowly(timestamp, None, value, ()) < 0:
                    break
            elif not self._is_open or not self._put(timestamp, None, value, None):
                break
            index += 1
        return start, index - first

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=False)
    def _put(self, timestamp: cython.longlong, key: Any, value: Any, tail: Any) -> cython.int:
        """Writes a record; 0 if there is no room for it."""
        if self._count == 0:
            self._base = self._largest = timestamp
        delta: cython.longlong = timestamp - self._base
        key_size: cython.Py_ssize_t = size_of(key)
        value_size: cython.Py_ssize_t = size_of(value)
        tail_size: cython.Py_ssize_t = 1 if tail is None else size_of(tail)
        body: cython.Py_ssize_t = body_size(delta, self._count, key_size, value_size) + tail_size
        end: cython.Py_ssize_t = self._position + varint_size(body) + body
        if end > self._size_bytes_max and self._count > 0:
            return 0
        if end > self._capacity:
            self._capacity = max(end, min(max(2 * self._capacity, 1024), self._size_bytes_max))
            PyByteArray_Resize(self._buffer, self._capacity)
        if self._count == 0 or timestamp != self._last:
            self._note(timestamp)
        out: cython.p_uchar = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(self._buffer))
        position: cython.Py_ssize_t = put_varint(out, self._position, body)
        position = put_body(out, position, delta, self._count, address_of(key), key_size, address_of(value), value_size)
        if tail is None:
            out[position] = 0
        else:
            memcpy(out + position, address_of(tail), tail_size)
        self._position = position + tail_size
        self._count += 1
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _note(self, timestamp: cython.longlong) -> cython.int:
        self._times.append(timestamp)
        self._starts.append(self._count)
        self._last = timestamp
        if timestamp > self._largest:
            self._largest = timestamp
        return 0

    def _append_slowly(self, timestamp: int, key: Any, value: Any, headers: Any) -> int:
        if not self._is_open:
            return NO_ROOM
        base = self._base if self._count else timestamp
        record = record_encoder.encoded_record(self._count, timestamp, timestamp - base, key, value, headers)
        if self._position + len(record) > self._size_bytes_max and self._count:
            return NO_ROOM
        if not self._count:
            self._base = self._largest = timestamp
        if not self._count or timestamp != self._last:
            self._note(timestamp)
        self._buffer += record
        self._position += len(record)
        self._count += 1
        return self._count - 1

    def take(self) -> tuple[bytearray, int, int, int]:
        """The buffer with all records, how many there are, and the first and the largest timestamp."""
        self._is_open = False
        if cython.compiled:
            PyByteArray_Resize(self._buffer, self._position)
            self._capacity = self._position
            memset(PyByteArray_AS_STRING(self._buffer), 0, self._reserved_bytes)
        return self._buffer, self._count, self._base, self._largest

    def release(self) -> None:
        """Forget the bytes; what can still be asked for is how many records there were, and their timestamps."""
        self._is_open = False
        self._buffer = bytearray()
        self._capacity = 0

    def timestamps(self, first: int, count: int) -> list[int]:
        """Of so many records that were appended."""
        assert 0 <= first <= first + count <= self._count
        found: list[int] = []
        run = bisect_right(self._starts, first) - 1
        while len(found) < count:
            end = self._starts[run + 1] if run + 1 < len(self._starts) else self._count
            found += [self._times[run]] * (min(end, first + count) - first - len(found))
            run += 1
        return found


@cython.cclass
class OpenBatches:
    """The way that most records take: by topic, the batch that the next one goes into unless somebody must decide.

    A topic's batch is its only while ``fresh``, what is known of the cluster, has anything in it. Where this is
    compiled, ``promise`` is one step for all threads, as ``append`` is.
    """

    _kind: type
    _wall_ns: Any
    _ways: dict[Any, Any]
    _is_held: cython.bint

    def __init__(self, kind: type, wall_ns: Callable[[], int]) -> None:
        """Promises are named tuples ``kind`` of a batch's owner and the record's place."""
        self._kind = kind
        self._wall_ns = wall_ns
        self._ways = {}
        self._is_held = False

    def open(self, topic: str, builder: RecordBuilder, owner: Any, fresh: dict[Any, Any]) -> None:
        self._ways[topic] = (builder, owner, fresh)

    def hold(self) -> None:
        """Nobody is let through: others, who came before, are on a longer way."""
        self._is_held = True

    def let_go(self) -> None:
        self._is_held = False

    def promise(self, topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp_ms: Any) -> Any:
        """What becomes of the record; None if it is not in a batch yet."""
        if key is not None or partition is not None or timestamp_ms is not None or headers:
            return None
        if type(value) is not bytes or type(topic) is not str:
            return None
        now_ns: cython.longlong = self._wall_ns()
        way = self._ways.get(topic)
        if way is None or self._is_held:
            return None
        fresh: dict[Any, Any] = way[2]
        if not fresh:
            return None
        builder: RecordBuilder = way[0]
        number: cython.Py_ssize_t = builder.append(now_ns // 1_000_000, None, value, ())
        if number < 0:
            return None
        if cython.compiled:
            return new_pair(self._kind, way[1], number)
        return tuple.__new__(self._kind, (way[1], number))
