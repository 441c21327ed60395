# cython: boundscheck=False, wraparound=False, cdivision=True, infer_types=True
"""The hot loops of compaction: note the offset of every key, mark the records that stay, copy those.

One source runs interpreted and compiled, as in :mod:`barnabas.wire.record_codec`. What stays and why is decided in the
storage room, which owns the table of hashes that is filled and asked here; a batch reaches these loops after its
checksum was found right, so only what must hold for safe reading is looked at. Compiled, they run without the
interpreter's lock.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from barnabas.model.errors import CorruptBatch

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.sip_hash import sip_hash
    from cython.cimports.libc.string import memcpy

COMPILED: bool = cython.compiled

RECORD_BYTES_MIN = 7  # length, attributes, timestamp, offset, key, value, header count: a byte each
VARINT_BYTES_MAX = 10
# Of 64 bits each: both halves of the key's hash, then its offset plus one, where zero says that the slot is free. The
# loops have the number written out, because a name would need the interpreter.
SLOT_WORDS = 3


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.longlong, cython.Py_ssize_t))
def _varint(data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Any:
    """A varint and the position after it, which lies beyond ``end`` if there is none."""
    raw: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while position < end and shift < 64:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, end + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns(
    (
        cython.Py_ssize_t,
        cython.longlong,
        cython.Py_ssize_t,
        cython.longlong,
        cython.Py_ssize_t,
        cython.longlong,
        cython.longlong,
    )
)
def _record(data: cython.p_const_uchar, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> Any:
    """The record at ``position``: its end (-1 if it is malformed), timestamp delta, where that delta ends, offset
    delta, where its key lies, and the sizes of key and value."""
    size, position = _varint(data, position, end)
    if size < 0 or size > end - position:
        return -1, 0, 0, 0, 0, 0, 0
    end = position + size
    timestamp_delta, after_timestamp = _varint(data, position + 1, end)
    offset_delta, position = _varint(data, after_timestamp, end)
    key_size, key = _varint(data, position, end)
    if key_size < -1 or offset_delta < 0 or key_size > end - key:
        return -1, 0, 0, 0, 0, 0, 0
    value_size, position = _varint(data, key + key_size if key_size > 0 else key, end)
    if value_size < -1 or value_size > end - position or position > end:
        return -1, 0, 0, 0, 0, 0, 0
    return end, timestamp_delta, after_timestamp, offset_delta, key, key_size, value_size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.ulonglong))
def _hash(
    data: cython.p_const_uchar,
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    seed_low: cython.ulonglong,
    seed_high: cython.ulonglong,
) -> Any:
    """128 bits that nobody who does not know the seed can make equal for two keys: SipHash-2-4 where it is compiled.

    The hash is never stored, so the interpreted form may take another that the interpreter has compiled.
    """
    if not cython.compiled:
        seed = seed_low.to_bytes(8, "little") + seed_high.to_bytes(8, "little")
        digest = blake2b(data[start : start + size], digest_size=16, key=seed).digest()
        return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
    return sip_hash(data + start, size, seed_low, seed_high)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _place(
    table: cython.p_ulonglong, slot_count: cython.ulonglong, low: cython.ulonglong, high: cython.ulonglong
) -> cython.Py_ssize_t:
    """The first word of the slot that has this hash or, if none has, of the free one where it belongs.

    There always is a free one: the owner of the table lets nobody fill it.
    """
    slot: cython.ulonglong = low % slot_count
    word: cython.Py_ssize_t = 3 * slot
    while table[word + 2] != 0 and (table[word] != low or table[word + 1] != high):
        slot += 1
        if slot == slot_count:
            slot = 0
        word = 3 * slot
    return word


def hash_of(key: bytes, seed_low: cython.ulonglong, seed_high: cython.ulonglong) -> tuple[int, int]:
    """Both halves of a key's hash, as the table holds them."""
    low, high = _hash(key, 0, len(key), seed_low, seed_high)
    return low, high


def put_keys(
    payload: Any,
    record_count: cython.Py_ssize_t,
    base_offset: cython.longlong,
    start_offset: cython.longlong,
    table: Any,
    room: cython.Py_ssize_t,
    seed: Any,
) -> tuple[int, bool]:
    """Notes the offset of every key at or above ``start_offset``; how many keys are new, and whether all fitted.

    ``room`` is how many new ones may come. What was noted before it ran out stays; calling again with a larger table
    is harmless.
    """
    end: cython.Py_ssize_t = _sane_size(payload, record_count)
    slots: cython.Py_ssize_t = len(table) // SLOT_WORDS
    words: cython.p_ulonglong
    data: cython.p_const_uchar
    seed_low: cython.ulonglong = seed[0]
    seed_high: cython.ulonglong = seed[1]
    if cython.compiled:
        view: cython.const_uchar[::1] = payload
        cells: cython.ulonglong[::1] = table
        data = cython.address(view[0])
        words = cython.address(cells[0])
    else:
        data, words = bytes(payload), table
    position: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t = 0
    added: cython.Py_ssize_t = 0
    with cython.nogil:
        while index < record_count:
            position, _, _, offset, key, key_size, _ = _record(data, position, end)
            if position < 0:
                break
            offset += base_offset
            if key_size >= 0 and offset >= start_offset:
                low, high = _hash(data, key, key_size, seed_low, seed_high)
                word = _place(words, slots, low, high)
                if words[word + 2] == 0:
                    if added == room:
                        break
                    added += 1
                    words[word] = low
                    words[word + 1] = high
                words[word + 2] = offset + 1
            index += 1
    if position < 0:
        raise CorruptBatch(f"record {index} of {record_count} is malformed")
    return added, index == record_count


def mark_kept(
    payload: Any,
    base_offset: cython.longlong,
    latest_offset: cython.longlong,
    keeps_tombstones: cython.bint,
    table: Any,
    seed: Any,
    keep: bytearray,
) -> tuple[int, int, int, int]:
    """Sets the byte in ``keep`` of each record that stays: how many do, how many of these are tombstones, and the least
    and the largest timestamp delta among them.

    A record stays unless a later one of its key is noted; without a key it goes, above ``latest_offset`` it stays.
    """
    count: cython.Py_ssize_t = len(keep)
    end: cython.Py_ssize_t = _sane_size(payload, count)
    slots: cython.Py_ssize_t = len(table) // SLOT_WORDS
    words: cython.p_ulonglong
    marks: cython.p_uchar
    data: cython.p_const_uchar
    seed_low: cython.ulonglong = seed[0]
    seed_high: cython.ulonglong = seed[1]
    if cython.compiled:
        view: cython.const_uchar[::1] = payload
        cells: cython.ulonglong[::1] = table
        flags: cython.uchar[::1] = keep
        data = cython.address(view[0])
        words = cython.address(cells[0])
        marks = cython.address(flags[0])
    else:
        data, words, marks = bytes(payload), table, keep
    position: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t = 0
    kept: cython.Py_ssize_t = 0
    tombstones: cython.Py_ssize_t = 0
    least: cython.longlong = 0
    most: cython.longlong = 0
    noted: cython.longlong
    with cython.nogil:
        while index < count:
            position, delta, _, offset, key, key_size, value_size = _record(data, position, end)
            if position < 0:
                break
            offset += base_offset
            if offset > latest_offset:
                marks[index] = 1
            elif key_size < 0 or (value_size < 0 and not keeps_tombstones):
                marks[index] = 0
            else:
                low, high = _hash(data, key, key_size, seed_low, seed_high)
                word = _place(words, slots, low, high)
                noted = words[word + 2]
                marks[index] = 1 if offset + 1 >= noted else 0
            if marks[index]:
                if kept == 0 or delta < least:
                    least = delta
                if kept == 0 or delta > most:
                    most = delta
                kept += 1
                if value_size < 0:
                    tombstones += 1
            index += 1
    if position < 0:
        raise CorruptBatch(f"record {index} of {count} is malformed")
    return kept, tombstones, least, most


def copy_kept(payload: Any, keep: Any, reserved_bytes: cython.Py_ssize_t, shift: cython.longlong) -> bytearray:
    """``reserved_bytes`` zeros and the records that are marked behind them, ``shift`` added to each timestamp delta."""
    count: cython.Py_ssize_t = len(keep)
    end: cython.Py_ssize_t = _sane_size(payload, count)
    buffer = bytearray(reserved_bytes + end + (2 * VARINT_BYTES_MAX * count if shift else 0))
    data: cython.p_const_uchar
    marks: cython.p_const_uchar
    out: cython.p_uchar
    if cython.compiled:
        view: cython.const_uchar[::1] = payload
        flags: cython.const_uchar[::1] = keep
        target: cython.uchar[::1] = buffer
        data = cython.address(view[0])
        marks = cython.address(flags[0])
        out = cython.address(target[0])
    else:
        data, marks, out = bytes(payload), keep, buffer
    position: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = reserved_bytes
    size: cython.Py_ssize_t
    with cython.nogil:
        while index < count:
            start = position
            position, delta, after_timestamp, _, _, _, _ = _record(data, position, end)
            if position < 0:
                break
            if marks[index]:
                if shift:
                    size = position - after_timestamp
                    at = _put(out, at, 1 + _size(delta + shift) + size)
                    out[at] = 0
                    at = _put(out, at + 1, delta + shift)
                    start = after_timestamp
                else:
                    size = position - start
                if cython.compiled:
                    memcpy(out + at, data + start, size)
                else:
                    out[at : at + size] = data[start : start + size]
                at += size
            index += 1
    if position < 0:
        raise CorruptBatch(f"record {index} of {count} is malformed")
    if cython.compiled:
        target = None
    del buffer[at:]
    return buffer


def move_slots(source: Any, target: Any) -> None:
    """Puts all that one table holds into a larger, empty one."""
    count: cython.Py_ssize_t = len(source) // SLOT_WORDS
    slots: cython.Py_ssize_t = len(target) // SLOT_WORDS
    words: cython.p_ulonglong
    fresh: cython.p_ulonglong
    if cython.compiled:
        old: cython.ulonglong[::1] = source
        new: cython.ulonglong[::1] = target
        words = cython.address(old[0])
        fresh = cython.address(new[0])
    else:
        words, fresh = source, target
    slot: cython.Py_ssize_t = 0
    with cython.nogil:
        while slot < count:
            word = 3 * slot
            if words[word + 2] != 0:
                place = _place(fresh, slots, words[word], words[word + 1])
                fresh[place] = words[word]
                fresh[place + 1] = words[word + 1]
                fresh[place + 2] = words[word + 2]
            slot += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _size(value: cython.longlong) -> cython.Py_ssize_t:
    size: cython.Py_ssize_t = 1
    while value > 63 or value < -64:
        value >>= 7
        size += 1
    return size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _put(out: cython.p_uchar, position: cython.Py_ssize_t, value: cython.longlong) -> cython.Py_ssize_t:
    raw: cython.ulonglong = value << 1 if value >= 0 else ~(value << 1)
    while raw > 0x7F:
        out[position] = (raw & 0x7F) | 0x80
        position += 1
        raw >>= 7
    out[position] = raw
    return position + 1


@cython.cfunc
def _sane_size(payload: Any, record_count: cython.Py_ssize_t) -> object:
    """The payload's size, once it can hold so many records."""
    size = len(payload)
    if record_count < 0 or record_count > size // RECORD_BYTES_MIN:
        raise CorruptBatch(f"{size} bytes cannot hold {record_count} records")
    return size
