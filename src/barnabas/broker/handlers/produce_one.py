"""The produce that most clients send: one batch for one partition, read and answered without a message object.

It takes the requests that look exactly like that (versions 9–13, acks 1 or all, no transaction, nothing unusual) and
leaves everything else, and everything that goes wrong, to :mod:`barnabas.broker.handlers.produce`, which then finds the
same and says it. Half of a small request's time would otherwise go into objects that live for microseconds: see
``docs/adr/0005-one-batch-produce.md`` for what was measured. The dispatcher calls ``attempt``.
"""

from __future__ import annotations

import asyncio
import struct
from struct import Struct
from typing import Final

from barnabas.broker.services import Services
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.replication.partition import Partition
from barnabas.storage.log import Appended
from barnabas.storage.validate import needs_worker, validate
from barnabas.transport.connection import Later, Parts
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
_REQUEST: Final = Struct(">BBhiB")  # tags of the header, transactional id (null), acks, time-out, number of topics
_PARTITION: Final = Struct(">Bi")  # number of partitions, index
_END: Final = b"\0\0\0"  # no tags behind the partition, the topic and the request
_ANSWER: Final = Struct(">iiBB")  # size, correlation id, tags, number of topics
# Partitions, index, error, base offset, append time, log start, record errors, error text, tags, throttle time, tags.
_ROW: Final = Struct(">BihqqqBBBBiB")


def attempt(broker: Services, frame: memoryview) -> Parts | Later | None:
    """The answer, or None if the request is not of this kind or cannot simply succeed."""
    try:
        _, version, correlation_id, length = _HEADER.unpack_from(frame)
        position = _HEADER.size + (length if length > 0 else 0)
        tags, transactional_id, acks, timeout_ms, topics = _REQUEST.unpack_from(frame, position)
        if version not in VERSIONS or tags or transactional_id or topics != ONE or acks not in ACKS:
            return None
        name = position + _REQUEST.size
        if version >= TOPIC_IDS_SINCE:
            position = name + UUID_BYTES
        else:
            position = name + frame[name]
            if not 1 < frame[name] <= NAME_BYTES_MAX + 1:
                return None
        partitions, index = _PARTITION.unpack_from(frame, position)
        topic = frame[name:position]
        size, position = _size(frame, position + _PARTITION.size)
    except (IndexError, struct.error):
        return None
    end = position + size
    records = frame[position:end]
    if partitions != ONE or len(frame) != end + len(_END) or frame[end:].tobytes() != _END:
        return None
    replicas = broker.replicas
    if version >= TOPIC_IDS_SINCE:
        partition = replicas.by_id.get((topic.tobytes(), index))  # type: ignore[arg-type]
    else:
        partition = replicas.by_name.get((topic[1:].tobytes().decode(errors="replace"), index))
    if partition is None or partition.is_internal or partition.rules.uses_append_time or needs_worker(records):
        return None
    now_ms = broker.world.clock.wall_ms()
    try:
        validated = validate(records, partition.rules, now_ms=now_ms)
        if validated.header[5] & TRANSACTIONAL:
            return None
        appended = partition.append(validated, is_waiting_for_all=acks == ACKS_ALL, now_ms=now_ms)
    except (ApiError, DiskFailure):
        return None
    traffic = partition.traffic
    traffic.produces += 1
    traffic.bytes_in += size
    traffic.messages_in += appended[1] - appended[0] + 1
    answer = _Answer(correlation_id, topic, index)
    if acks == ACKS_ALL and partition.log.high_watermark <= appended.last_offset:
        return _wait(answer.detached(), partition, appended, timeout_ms=min(max(timeout_ms, 0), TIMEOUT_MS_MAX))
    return answer.success(appended)


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


class _Answer:
    __slots__ = ("_correlation_id", "_index", "_topic")

    def __init__(self, correlation_id: int, topic: memoryview | bytes, index: int) -> None:
        self._correlation_id = correlation_id
        self._topic = topic
        self._index = index

    def detached(self) -> _Answer:
        """One that may wait: it keeps no view into the request."""
        return _Answer(self._correlation_id, bytes(self._topic), self._index)

    def success(self, appended: Appended) -> Parts:
        return self._encode(0, appended[0], appended[2], appended[3])

    def failure(self, error: WireError) -> Parts:
        return self._encode(error.code, -1, -1, -1)

    def _encode(self, error_code: int, base_offset: int, append_time_ms: int, log_start_offset: int) -> Parts:
        size_bytes = _ANSWER.size - 4 + len(self._topic) + _ROW.size
        return [
            b"".join(
                (
                    _ANSWER.pack(size_bytes, self._correlation_id, 0, ONE),
                    self._topic,
                    _ROW.pack(
                        ONE, self._index, error_code, base_offset, append_time_ms, log_start_offset, 1, 0, 0, 0, 0, 0
                    ),
                )
            )
        ]


def _wait(answer: _Answer, partition: Partition, appended: Appended, *, timeout_ms: int) -> Later:
    """Answer when every in-sync replica has the batch, or say that it was not so in time."""
    loop = asyncio.get_running_loop()
    future: Later = loop.create_future()

    def settle(parts: Parts) -> None:
        timer.cancel()
        if not future.done():
            future.set_result(parts)

    def acknowledged(is_done: bool) -> None:
        settle(answer.success(appended) if is_done else answer.failure(errors.NOT_LEADER_OR_FOLLOWER))

    timer = loop.call_later(timeout_ms / 1000, lambda: settle(answer.failure(errors.REQUEST_TIMED_OUT)))
    partition.when_acknowledged(appended.last_offset, acknowledged)
    return future
