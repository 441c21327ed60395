# cython: boundscheck=False, wraparound=False, cdivision=True
"""The produce request that most clients send, read in place: one batch for one partition, versions 9 to 13.

One source runs interpreted and compiled, as in :mod:`barnabas.wire.record_codec`. Every other produce, and every other
request, is read by the codec that is made from its declaration; the broker's ``produce_one`` calls this.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.memoryview import PyMemoryView_GET_BUFFER

COMPILED: bool = cython.compiled

FIRST_VERSION = 9
LAST_VERSION = 13
TOPIC_IDS_SINCE = 13
HEADER_BYTES = 10  # API, version, correlation id, length of the client id
REQUEST_BYTES = 9  # tags of the header, transactional id, acks, time-out, number of topics
PARTITION_BYTES = 5  # number of partitions, index
END_BYTES = 3  # no tags behind the partition, the topic and the request
UUID_BYTES = 16
NAME_SIZE_MAX = 127  # of a name with its length, which is one byte then; longer names are read elsewhere
ONE = 2  # how a compact array says that it has one element
LAST_SHIFT = 28  # of the fifth and last byte of a size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int16(data: cython.p_const_uchar, position: cython.Py_ssize_t) -> cython.int:
    value: cython.int = data[position] << 8 | data[position + 1]
    return value - 0x10000 if value > 0x7FFF else value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int32(data: cython.p_const_uchar, position: cython.Py_ssize_t) -> cython.longlong:
    high: cython.longlong = _int16(data, position)
    return high * 0x10000 + (data[position + 2] << 8 | data[position + 3])


def read(frame: memoryview) -> tuple[Any, ...] | None:
    """Version, correlation id, acks, time-out, topic, index, and from where to where the records lie.

    The topic is its id or, before version 13, its name behind the byte of its length. None if the request is not of
    this kind, or not whole.
    """
    end: cython.Py_ssize_t = len(frame)
    data: cython.p_const_uchar = (
        cython.cast(cython.p_const_uchar, PyMemoryView_GET_BUFFER(frame).buf) if cython.compiled else frame
    )
    if end < HEADER_BYTES:
        return None
    version: cython.int = _int16(data, 2)
    if version < FIRST_VERSION or version > LAST_VERSION:
        return None
    length: cython.int = _int16(data, 8)  # of the client id; negative if there is none
    position: cython.Py_ssize_t = HEADER_BYTES + length if length > 0 else HEADER_BYTES
    name: cython.Py_ssize_t = position + REQUEST_BYTES
    if name >= end or data[position] or data[position + 1] or data[name - 1] != ONE:
        return None
    acks: cython.int = _int16(data, position + 2)
    if acks != -1 and acks != 1:
        return None
    timeout_ms: cython.longlong = _int32(data, position + 4)
    stop: cython.Py_ssize_t = name + UUID_BYTES
    if version < TOPIC_IDS_SINCE:
        stop = name + data[name]
        if data[name] < 2 or data[name] > NAME_SIZE_MAX:
            return None
    position = stop + PARTITION_BYTES
    if position >= end or data[stop] != ONE:
        return None
    index: cython.longlong = _int32(data, stop + 1)
    size: cython.longlong = 0
    shift: cython.int = 0
    byte: cython.longlong
    while True:
        byte = data[position]
        position += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > LAST_SHIFT or position >= end:
            return None
    # A size is stored as one more, and null as nothing.
    if size < 1 or size - 1 != end - END_BYTES - position or data[end - 3] or data[end - 2] or data[end - 1]:
        return None
    topic = data[name:stop] if cython.compiled else bytes(frame[name:stop])
    return version, _int32(data, 4), acks, timeout_ms, topic, index, position, end - END_BYTES
