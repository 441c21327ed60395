"""How records become batches, and the rules that keep a partition's order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.errors import LostSequence, TimedOut
from barnabas.client.produce.accumulator import Accumulator, PartitionQueue
from barnabas.client.produce.batch import Batch, Delivery, Identity
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.wire.batch import read_header
from barnabas.wire.compression import Codec

PLACE = TopicPartition("t", 0)
SIZE = 8  # of the record below


def accumulator(*, batch_bytes: int = 1000, is_idempotent: bool = True, memory: int = 1 << 20) -> Accumulator:
    return Accumulator(
        batch_bytes=batch_bytes,
        linger=0.005,
        delivery_timeout=10.0,
        memory_bytes_max=memory,
        is_idempotent=is_idempotent,
    )


def add(where: Accumulator, count: int = 1, *, now: float = 0.0) -> list[Delivery]:
    return [where.append(PLACE, 7, None, b"x", now=now) for _ in range(count)]


def queue_of(where: Accumulator, *, producer_id: int = 1) -> PartitionQueue:
    queue = where.queues[PLACE]
    where.adopt(queue, Identity(producer_id, 0))
    return queue


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def settle(where: Accumulator, queue: PartitionQueue, batch: Batch, *, offset: int) -> None:
    queue.settle(batch, is_written=True)
    batch.succeed(offset, -1)
    where.settled(batch)


def test_records_share_a_batch_until_it_is_full() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=61 + 3 * SIZE)
        add(where, 7)
        assert [len(batch.records) for batch in where.queues[PLACE].waiting] == [3, 3, 1]
        assert where.used_bytes == 3 * (61 + 3 * SIZE)  # what is open may be filled

    run(test)


def test_a_lone_batch_lingers_and_a_full_one_does_not() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=61 + 2 * SIZE)
        add(where, now=1.0)
        queue = queue_of(where)
        assert where.sendable_at(queue) == 1.005
        where.flushes = 1
        assert where.sendable_at(queue) == 0.0
        where.flushes = 0
        add(where, 2, now=1.0)
        assert where.sendable_at(queue) == 0.0

    run(test)


def test_batches_are_numbered_in_the_order_in_which_they_leave() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=61 + 2 * SIZE)
        add(where, 5)
        queue = queue_of(where)
        assert [queue.take().base_sequence for _ in range(3)] == [0, 2, 4]
        header = read_header(queue.in_flight[1].encode(Codec.NONE))
        assert (header.producer_id, header.base_sequence, header.record_count) == (1, 2, 2)

    run(test)


def test_sequences_wrap_to_zero() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=0)
        add(where, 2)
        queue = queue_of(where)
        queue.next_sequence = 2**31 - 1
        assert [queue.take().base_sequence for _ in range(2)] == [2**31 - 1, 0]

    run(test)


def test_without_idempotence_nothing_is_numbered() -> None:
    async def test() -> None:
        where = accumulator(is_idempotent=False)
        add(where)
        queue = where.queues[PLACE]
        assert not queue.needs_identity
        assert queue.take().base_sequence == -1

    run(test)


def test_what_must_go_again_goes_first_alone_and_with_its_number() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=0)
        add(where, 4)
        queue = queue_of(where)
        first, second, third = (queue.take() for _ in range(3))
        queue.give_back(second, not_before=2.0)
        queue.give_back(first, not_before=1.0)
        assert where.sendable_at(queue) is None  # the third is still under way
        settle(where, queue, third, offset=2)
        assert where.sendable_at(queue) == 2.0
        again = queue.take()
        assert (again, again.base_sequence) == (first, 0)
        assert where.sendable_at(queue) is None

    run(test)


def test_the_oldest_unsettled_batch_is_known() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=0)
        add(where, 2)
        queue = queue_of(where)
        first, second = queue.take(), queue.take()
        assert queue.is_first(first)
        assert not queue.is_first(second)
        queue.give_back(first, not_before=0.0)
        assert not queue.is_first(second)

    run(test)


def test_a_refused_last_batch_leaves_no_gap() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=0)
        add(where, 2)
        queue = queue_of(where)
        refused = queue.take()
        queue.settle(refused, is_written=False)
        assert (queue.needs_identity, queue.take().base_sequence) == (False, 0)

    run(test)


def test_a_gap_that_nothing_fills_brings_a_new_identity() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=0)
        deliveries = add(where, 3)
        queue = queue_of(where)
        first, second, third = (queue.take() for _ in range(3))
        queue.settle(first, is_written=False)
        first.fail(ApiError(errors.INVALID_RECORD))
        where.settled(first)
        assert queue.needs_identity
        queue.give_back(second, not_before=0.0)
        third.is_doubtful = True
        queue.give_back(third, not_before=0.0)
        where.adopt(queue, Identity(9, 0))
        # What may be in the log already is not sent under another identity: that could double it.
        with pytest.raises(LostSequence):
            await deliveries[2]
        again = queue.take()
        assert (again, again.identity, again.base_sequence) == (second, Identity(9, 0), 0)

    run(test)


def test_halves_of_a_batch_keep_numbers_order_and_promises() -> None:
    async def test() -> None:
        where = accumulator()
        deliveries = add(where, 5)
        queue = queue_of(where)
        batch = queue.take()
        where.split(queue, batch)
        first = queue.take()
        assert (first.base_sequence, len(first.records)) == (0, 2)
        settle(where, queue, first, offset=100)
        second = queue.take()
        assert (second.base_sequence, len(second.records)) == (2, 3)
        settle(where, queue, second, offset=200)
        assert [(await delivery).offset for delivery in deliveries] == [100, 101, 200, 201, 202]
        assert where.used_bytes == 0
        assert where.unsettled == []

    run(test)


def test_time_ends_what_waits_but_not_what_is_under_way() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=0)
        deliveries = add(where, 2)
        queue = queue_of(where)
        queue.take()
        where.expire(10.0)
        with pytest.raises(TimedOut):
            await deliveries[1]
        assert not deliveries[0].is_done
        assert len(queue.in_flight) == 1
        assert not queue.needs_identity

    run(test)


def test_memory_is_bounded_and_given_back() -> None:
    async def test() -> None:
        where = accumulator(memory=3 * SIZE)
        add(where, 3)
        assert not where.has_room(1)
        queue = queue_of(where)
        settle(where, queue, queue.take(), offset=0)
        assert where.has_room(3 * SIZE)

    run(test)


def test_one_waiter_that_gives_up_takes_nothing_from_the_others() -> None:
    async def test() -> None:
        where = accumulator()
        deliveries = add(where, 2)
        queue = queue_of(where)

        async def wait(delivery: Delivery) -> int:
            return (await delivery).offset

        quitter, patient = (asyncio.ensure_future(wait(delivery)) for delivery in deliveries)
        await asyncio.sleep(0)
        quitter.cancel()
        await asyncio.sleep(0)
        settle(where, queue, queue.take(), offset=40)
        assert await patient == 41
        assert quitter.cancelled()

    run(test)


def test_a_failure_that_nobody_waits_for_is_remembered() -> None:
    async def test() -> None:
        where = accumulator()
        add(where)
        queue = queue_of(where)
        batch = queue.take()
        queue.settle(batch, is_written=False)
        batch.fail(ApiError(errors.INVALID_RECORD))
        where.settled(batch)
        assert isinstance(where.failure, ApiError)

    run(test)


def test_the_first_batch_of_a_sequence_leaves_alone() -> None:
    async def test() -> None:
        where = accumulator(batch_bytes=1)
        add(where, 4)
        queue = queue_of(where)
        first = queue.take()
        assert where.sendable_at(queue) is None
        settle(where, queue, first, offset=0)
        queue.take()
        assert where.sendable_at(queue) is not None  # from now on several are under way
        where.adopt(queue_without_flights(queue), Identity(2, 0))
        queue.take()
        assert where.sendable_at(queue) is None

    run(test)


def queue_without_flights(queue: PartitionQueue) -> PartitionQueue:
    for batch in list(queue.in_flight):
        queue.give_back(batch, not_before=0.0)
    return queue
