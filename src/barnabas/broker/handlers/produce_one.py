"""The produce that most clients send: one batch for one partition, read and answered without a message object.

It takes the requests that look exactly like that (versions 9–13, acks 1 or all, no transaction, nothing unusual) and
leaves everything else, and everything that goes wrong, to :mod:`barnabas.broker.handlers.produce`, which then finds the
same and says it. Half of a small request's time would otherwise go into objects that live for microseconds: see
``docs/adr/0005-one-batch-produce.md`` for what was measured. The dispatcher calls ``attempt``.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Final

from barnabas.broker.services import Services
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.replication.partition import Partition
from barnabas.storage.log import Appended
from barnabas.storage.validate import WORKER_BYTES_MIN, needs_worker, validate
from barnabas.transport.connection import Later, Parts
from barnabas.transport.outbox import LastAnswer
from barnabas.wire.batch import TRANSACTIONAL
from barnabas.world.disk import DiskFailure

VERSIONS: Final = range(9, 14)
TOPIC_IDS_SINCE: Final = 13
ACKS_ALL: Final = -1
ACKS: Final = (ACKS_ALL, 1)
TIMEOUT_MS_MAX: Final = 24 * 3600 * 1000
NAME_BYTES_MAX: Final = 126  # its length fits into one byte; longer names take the other way
ONE: Final = 2  # how a compact array says that it has one element
UUID_BYTES: Final = 16
SHIFT_MAX: Final = 28  # of the fifth and last byte of a size

_HEADER: Final = Struct(">hhih")  # API, version, correlation id, length of the client id
# Tags of the header, transactional id (null), acks, time-out, number of topics, and the byte behind them.
_REQUEST: Final = Struct(">BBhiBB")
_REQUEST_BYTES: Final = _REQUEST.size - 1
_PARTITION: Final = Struct(">BiBB")  # number of partitions, index, and the first two bytes of the records' size
_SIZE_AT: Final = _PARTITION.size - 2
_END_BYTES: Final = 3  # no tags behind the partition, the topic and the request
# Size, correlation id, tags and the number of topics; the topic; partitions, index, error, base offset, append time,
# log start; then no record errors, no error text, no tags, no throttle time, no tags.
_ANSWER: Final = ">iiH{}sBihqqq9s"
_ANSWER_END: Final = b"\1" + bytes(8)
_ANSWERS: Final = [Struct(_ANSWER.format(size)).pack for size in range(NAME_BYTES_MAX + 2)]
_ANSWER_BYTES: Final = Struct(_ANSWER.format(0)).size - 4  # as the size counts them, without the topic

_unpack_header: Final = _HEADER.unpack_from
_unpack_request: Final = _REQUEST.unpack_from
_unpack_partition: Final = _PARTITION.unpack_from


def attempt(broker: Services, frame: memoryview) -> Parts | Later | None:
    """The answer, or None if the request is not of this kind or cannot simply succeed."""
    try:
        _, version, correlation_id, length = _unpack_header(frame)
        position = _HEADER.size + length if length > 0 else _HEADER.size
        tags, transactional_id, acks, timeout_ms, topics, name_size = _unpack_request(frame, position)
        if version not in VERSIONS or tags or transactional_id or topics != ONE or acks not in ACKS:
            return None
        name = position + _REQUEST_BYTES
        if version >= TOPIC_IDS_SINCE:
            position = name + UUID_BYTES
        elif 1 < name_size <= NAME_BYTES_MAX + 1:
            position = name + name_size
        else:
            return None
        topic = frame[name:position].tobytes()
        partitions, index, low, high = _unpack_partition(frame, position)
        if low >= 0x80 > high:  # from 127 to 16,382 bytes of records, as it mostly is
            size = (high << 7) + low - 0x81
            position += _PARTITION.size
        else:
            size, position = _size(frame, position + _SIZE_AT)
        end = position + size
        if partitions != ONE or len(frame) != end + _END_BYTES or frame[end] or frame[end + 1] or frame[end + 2]:
            return None
    except (IndexError, struct.error):
        return None
    if version >= TOPIC_IDS_SINCE:
        partition = broker.replicas.by_id.get((topic, index))  # type: ignore[arg-type]
    else:
        partition = broker.replicas.by_name.get((topic[1:].decode(errors="replace"), index))
    if partition is None or partition.is_internal:
        return None
    rules = partition.rules
    records = frame[position:end]
    if rules.uses_append_time or (size > WORKER_BYTES_MIN and needs_worker(records)):
        return None
    now_ms = broker.world.clock.wall_ms()
    try:
        validated = validate(records, rules, now_ms=now_ms)
        if validated[1][5] & TRANSACTIONAL:
            return None
        appended = partition.append(validated, is_waiting_for_all=acks == ACKS_ALL, now_ms=now_ms)
    except (ApiError, DiskFailure):
        return None
    base_offset, last_offset, append_time_ms, log_start_offset, _ = appended
    traffic = partition.traffic
    traffic.produces += 1
    traffic.bytes_in += size
    traffic.messages_in += last_offset - base_offset + 1
    if acks == ACKS_ALL and partition.log.high_watermark <= last_offset:
        timeout_ms = min(max(timeout_ms, 0), TIMEOUT_MS_MAX)
        return _wait(partial(_answer, correlation_id, topic, index), partition, appended, timeout_ms=timeout_ms)
    return _answer(correlation_id, topic, index, 0, base_offset, append_time_ms, log_start_offset)


def _size(frame: memoryview, position: int) -> tuple[int, int]:
    """The number of record bytes (stored as one more) and where they start; −1 for null, which matches nothing."""
    value = frame[position]
    position += 1
    if value & 0x80:
        value &= 0x7F
        shift = 7
        while True:
            byte = frame[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                break
            shift += 7
            if shift > SHIFT_MAX:
                return -1, position
    return value - 1, position


def _answer(
    correlation_id: int,
    topic: bytes,
    index: int,
    error_code: int,
    base_offset: int,
    append_time_ms: int,
    log_start_offset: int,
) -> Parts:
    topic_bytes = len(topic)
    return [
        _ANSWERS[topic_bytes](
            _ANSWER_BYTES + topic_bytes,
            correlation_id,
            ONE,
            topic,
            ONE,
            index,
            error_code,
            base_offset,
            append_time_ms,
            log_start_offset,
            _ANSWER_END,
        )
    ]


def _wait(answer: Callable[..., Parts], partition: Partition, appended: Appended, *, timeout_ms: int) -> Later:
    """Answer when every in-sync replica has the batch, or say that it was not so in time."""
    loop = asyncio.get_running_loop()
    future: Later = loop.create_future()

    def settle(parts: Parts) -> None:
        timer.cancel()
        if not future.done():
            future.set_result(parts)

    def acknowledged(is_done: bool) -> None:
        if is_done:
            settle(answer(0, appended.base_offset, appended.append_time_ms, appended.log_start_offset))
        else:
            fail(errors.NOT_LEADER_OR_FOLLOWER)

    def fail(error: WireError) -> None:
        settle(answer(error.code, -1, -1, -1))

    def time_out() -> None:
        error = partition.why_late(timeout_ms)
        if error is errors.NOT_LEADER_OR_FOLLOWER:
            settle(LastAnswer(answer(error.code, -1, -1, -1)))
        else:
            fail(error)

    timer = loop.call_later(timeout_ms / 1000, time_out)
    partition.when_acknowledged(appended.last_offset, acknowledged)
    return future
