"""Fetches in turns: a few at a time, in order, and whoever else wants the loop gets it in between."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from barnabas.broker.fetching.turns import FETCHES_PER_TURN_MAX, FetchTurns


def test_those_that_exceed_a_turn_queue_in_order_and_others_get_in_between() -> None:
    async def work() -> list[int]:
        turns = FetchTurns()
        looked: list[int] = []
        seen_by_others: list[int] = []
        count = 5 * FETCHES_PER_TURN_MAX
        for number in range(count):
            turns.add(lambda number=number: looked.append(number))  # type: ignore[misc]
        while len(turns):
            await asyncio.sleep(0)
            seen_by_others.append(len(looked))
        assert looked == list(range(count))
        return seen_by_others

    seen = asyncio.run(work())
    steps = [after - before for before, after in pairwise(seen)]
    assert len(seen) > 1
    assert max(steps) <= FETCHES_PER_TURN_MAX


def test_what_is_looked_at_when_it_comes_counts_and_a_new_turn_has_room_again() -> None:
    async def work() -> None:
        turns = FetchTurns()
        assert [turns.take() for _ in range(FETCHES_PER_TURN_MAX + 1)] == [True] * FETCHES_PER_TURN_MAX + [False]
        await asyncio.sleep(0)
        assert turns.take()

    asyncio.run(work())


def test_nobody_overtakes_those_that_wait() -> None:
    async def work() -> None:
        turns = FetchTurns()
        turns.add(lambda: None)
        assert not turns.take()
        await asyncio.sleep(0)
        assert len(turns) == 0
        await asyncio.sleep(0)
        assert turns.take()

    asyncio.run(work())


def test_a_fetch_that_fails_does_not_stop_those_behind_it() -> None:
    def fail() -> None:
        raise ValueError("told")

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
        turns = FetchTurns()
        turns.add(fail)
        turns.add(lambda: looked.append(1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    told: list[object] = []
    looked: list[int] = []
    asyncio.run(work())
    assert looked == [1]
    assert len(told) == 1
