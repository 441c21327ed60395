"""The produce that most clients send: one batch for one partition, read and answered without a message object.

It takes the requests that look exactly like that (versions 9–13, acks 1 or all, no transaction, nothing unusual) and
leaves everything else, and everything that goes wrong, to :mod:`barnabas.broker.handlers.produce`, which then finds the
same and says it. Half of a small request's time would otherwise go into objects that live for microseconds: see
``docs/adr/0005-one-batch-produce.md`` for what was measured. The dispatcher calls ``attempt``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Final

from barnabas.broker.requests.services import Services
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.replication.partition import Partition
from barnabas.storage.log import Appended
from barnabas.storage.validate import (
    WORKER_BYTES_MIN,
    NeedsWorker,
    Unpacking,
    is_packed,
    needs_worker,
    validate,
)
from barnabas.transport.connection import Later, Parts
from barnabas.transport.outbox import LastAnswer
from barnabas.wire.batch import TRANSACTIONAL
from barnabas.wire.produce_frame import FIRST_VERSION, LAST_VERSION, NAME_SIZE_MAX, ONE, TOPIC_IDS_SINCE, read
from barnabas.world.disk import DiskFailure
from barnabas.world.timers import Timers

VERSIONS: Final = range(FIRST_VERSION, LAST_VERSION + 1)
ACKS_ALL: Final = -1
TIMEOUT_MS_MAX: Final = 24 * 3600 * 1000
# Size, correlation id, tags and the number of topics; the topic; partitions, index, error, base offset, append time,
# log start; then no record errors, no error text, no tags, no throttle time, no tags.
_ANSWER: Final = ">iiH{}sBihqqq9s"
_ANSWER_END: Final = b"\1" + bytes(8)
_ANSWERS: Final = [Struct(_ANSWER.format(size)).pack for size in range(NAME_SIZE_MAX + 1)]
_ANSWER_BYTES: Final = Struct(_ANSWER.format(0)).size - 4  # as the size counts them, without the topic


def attempt(broker: Services, frame: memoryview) -> Parts | Later | None:
    """The answer, or None if the request is not of this kind or cannot simply succeed."""
    found = read(frame)
    if found is None:
        return None
    version, correlation_id, acks, timeout_ms, topic, index, position, end = found
    if version >= TOPIC_IDS_SINCE:
        partition = broker.replicas.by_id.get((topic, index))
    else:
        partition = broker.replicas.by_name.get((topic[1:].decode(errors="replace"), index))
    if partition is None or partition.is_internal:
        return None
    rules = partition.rules
    records = frame[position:end]
    size = end - position
    if rules.uses_append_time or (size > WORKER_BYTES_MIN and needs_worker(records)):
        return None
    now_ms = broker.world.clock.wall_ms()
    try:
        unpacking = Unpacking() if is_packed(records) else None
        validated = validate(records, rules, now_ms=now_ms, unpacking=unpacking)
        if validated[1][5] & TRANSACTIONAL:
            return None
        appended = partition.append(validated, is_waiting_for_all=acks == ACKS_ALL, now_ms=now_ms)
    except (ApiError, DiskFailure, NeedsWorker):
        return None
    base_offset, last_offset, append_time_ms, log_start_offset, _ = appended
    traffic = partition.traffic
    traffic.produces += 1
    traffic.bytes_in += size
    traffic.messages_in += last_offset - base_offset + 1
    if acks == ACKS_ALL and partition.log.high_watermark <= last_offset:
        timeout_ms = min(max(timeout_ms, 0), TIMEOUT_MS_MAX)
        answer = partial(_answer, correlation_id, topic, index)
        return _wait(broker.timers, answer, partition, appended, timeout_ms=timeout_ms)
    return _answer(correlation_id, topic, index, 0, base_offset, append_time_ms, log_start_offset)


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


def _wait(
    timers: Timers, answer: Callable[..., Parts], partition: Partition, appended: Appended, *, timeout_ms: int
) -> Later:
    """Answer when every in-sync replica has the batch, or with an error after the timeout."""
    future: Later = asyncio.get_running_loop().create_future()

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

    timer = timers.after(timeout_ms, time_out)
    partition.when_acknowledged(appended.last_offset, acknowledged)
    return future
