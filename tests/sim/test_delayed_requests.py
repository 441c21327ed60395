"""A delayed request never touches the next transaction: whole brokers in virtual time, one story for each request."""

from __future__ import annotations

import asyncio

import pytest
from transaction_story import (
    V1,
    V2,
    Peer,
    Producer,
    committed_offset,
    committed_values,
    error_of,
    put_coordinator_far_away,
    run,
    slow_down_markers,
)

from barnabas.model import errors


def test_a_delayed_produce_of_an_ended_transaction_is_refused() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V2)
        await producer.init()
        await producer.send(producer.produce(0, [b"first"]))
        late = producer.produce(0, [b"late"])  # the producer gives up on this one
        elsewhere = producer.produce(1, [b"late"])  # and on this, in a partition that the coordinator never heard of
        await producer.end(producer.end_request(is_commit=False))
        for request in (late, elsewhere):
            answer = await peer.ask_elsewhere(request, V2.produce)
            assert error_of(answer) == errors.INVALID_PRODUCER_EPOCH.code
        await producer.send(producer.produce(0, [b"second"]))
        for request in (late, elsewhere):
            answer = await peer.ask_elsewhere(request, V2.produce)
            assert error_of(answer) == errors.INVALID_PRODUCER_EPOCH.code
        await producer.end(producer.end_request(is_commit=True))
        assert await committed_values(peer, 0) == [b"second"]
        assert await committed_values(peer, 1) == []

    run(story)


def test_a_delayed_offset_commit_of_an_ended_transaction_is_refused() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V2)
        await producer.init()
        late = producer.commit_offset(100)
        await producer.send(producer.commit_offset(1))
        await producer.end(producer.end_request(is_commit=True))
        answer = await peer.ask_elsewhere(late, V2.offsets)
        assert error_of(answer) == errors.INVALID_PRODUCER_EPOCH.code
        await producer.send(producer.commit_offset(2))
        answer = await peer.ask_elsewhere(late, V2.offsets)
        assert error_of(answer) == errors.INVALID_PRODUCER_EPOCH.code
        await producer.end(producer.end_request(is_commit=True))
        assert await committed_offset(peer) == 2

    run(story)


def test_an_offset_commit_that_comes_late_in_version_1_is_not_left_pending() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V1)
        await producer.init()
        await producer.add_group()
        await producer.send(producer.commit_offset(1))
        late = producer.commit_offset(100)
        await producer.end(producer.end_request(is_commit=True))
        answer = await peer.ask_elsewhere(late, V1.offsets)
        assert error_of(answer) == errors.TRANSACTION_ABORTABLE.code
        answer = await peer.ask_elsewhere(late, 3)
        assert error_of(answer) == errors.INVALID_TXN_STATE.code
        assert await committed_offset(peer) == 1

    run(story)


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_delayed_end_of_an_ended_transaction_leaves_the_next_one_open(is_commit: bool) -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V2)
        await producer.init()
        await producer.send(producer.produce(0, [b"first"]))
        late = producer.end_request(is_commit=is_commit)
        await producer.end(producer.end_request(is_commit=True))
        await producer.send(producer.produce(0, [b"second"]))
        answer = await peer.ask_elsewhere(late, V2.end)
        assert answer.error_code == errors.PRODUCER_FENCED.code
        await producer.send(producer.produce(0, [b"third"]))
        await producer.end(producer.end_request(is_commit=not is_commit))
        expected = [b"first"] if is_commit else [b"first", b"second", b"third"]
        assert await committed_values(peer, 0) == expected

    run(story)


def test_a_produce_that_comes_late_in_version_1_opens_no_transaction_that_nobody_ends() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V1)
        await producer.init()
        await producer.add(0)
        await producer.send(producer.produce(0, [b"first"]))
        late = producer.produce(0, [b"late"])
        await producer.end(producer.end_request(is_commit=True))
        answer = await peer.ask_elsewhere(late, V1.produce)
        assert error_of(answer) == errors.TRANSACTION_ABORTABLE.code
        answer = await peer.ask_elsewhere(late, 10)
        assert error_of(answer) == errors.INVALID_TXN_STATE.code
        assert await committed_values(peer, 0) == [b"first"]

    run(story)


def test_a_marker_between_the_question_and_the_append_is_noticed() -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V1)
        await producer.init()
        await producer.add(0)
        end = producer.end_request(is_commit=True)
        request = producer.produce(0, [b"late"])
        put_coordinator_far_away(peer, lambda: 1.0)
        late = asyncio.get_running_loop().create_task(peer.ask_elsewhere(request, V1.produce))
        await asyncio.sleep(1.5)  # the coordinator has said yes, and its answer is on the way
        await producer.end(end)
        assert error_of(await late) == errors.INVALID_TXN_STATE.code
        assert await committed_values(peer, 0) == []

    run(story)


@pytest.mark.parametrize("distance_s", [0.0, 0.1])
def test_the_next_transaction_may_begin_while_the_last_one_is_being_ended(distance_s: float) -> None:
    async def story(peer: Peer) -> None:
        producer = Producer(peer, V2)
        await producer.init()
        slow_down_markers(peer, 0.05 + distance_s / 2)
        put_coordinator_far_away(peer, lambda: distance_s)
        for number in range(5):
            # Markers of the last transaction arrive while the coordinator is asked about this one.
            await producer.send(producer.produce(0, [b"%d" % number]))
            await producer.send(producer.commit_offset(number))
            await producer.end(producer.end_request(is_commit=True))
        await asyncio.sleep(1)
        assert await committed_values(peer, 0) == [b"0", b"1", b"2", b"3", b"4"]
        assert await committed_offset(peer) == 4

    run(story)
