"""Deadlines on the world's clock."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.testing.loop import SimulatedLoop, simulate
from barnabas.testing.world import SimulatedClock
from barnabas.world.adjustable import AdjustableClock
from barnabas.world.real import RealClock, new_event_loop
from barnabas.world.timers import DEAD_TIMERS_MIN, Timers


def simulated() -> tuple[SimulatedClock, Timers]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    clock = SimulatedClock(loop)
    return clock, Timers(clock)


def test_timers_fire_at_their_time_and_ties_in_the_order_of_setting() -> None:
    async def main() -> list[tuple[int, str]]:
        clock, timers = simulated()
        fired: list[tuple[int, str]] = []
        for name, delay_ms in (("late", 50), ("a", 10), ("b", 10), ("now", 0)):
            timers.after(delay_ms, lambda name=name: fired.append((clock.monotonic_ms(), name)))
        await asyncio.sleep(1)
        return fired

    assert simulate(main) == [(0, "now"), (10, "a"), (10, "b"), (50, "late")]


def test_an_earlier_deadline_set_later_fires_first() -> None:
    async def main() -> list[str]:
        _, timers = simulated()
        fired: list[str] = []
        timers.after(1000, lambda: fired.append("far"))
        timers.after(10, lambda: fired.append("near"))
        await timers.sleep(20)
        return fired

    assert simulate(main) == ["near"]


def test_a_cancelled_timer_does_not_fire_even_when_it_is_due() -> None:
    async def main() -> list[str]:
        _, timers = simulated()
        fired: list[str] = []

        def first() -> None:
            fired.append("first")
            second.cancel()

        timers.after(10, first)
        second = timers.after(10, lambda: fired.append("second"))
        third = timers.after(20, lambda: fired.append("third"))
        third.cancel()
        third.cancel()
        assert not third.is_pending
        await asyncio.sleep(1)
        return fired

    assert simulate(main) == ["first"]


def test_cancelled_timers_take_no_room_for_long() -> None:
    async def main() -> None:
        _, timers = simulated()
        kept = timers.after(10_000, lambda: None)
        for _ in range(10_000):
            timers.after(5000, lambda: None).cancel()
            assert len(timers._heap) <= 2 * DEAD_TIMERS_MIN
        assert timers.count == 1
        assert kept.is_pending

    simulate(main)


def test_a_callback_that_fails_harms_no_other_and_is_reported() -> None:
    async def main() -> list[str]:
        _, timers = simulated()
        fired: list[str] = []

        def fail() -> None:
            raise ValueError("reported")

        timers.after(10, fail)
        timers.after(10, lambda: fired.append("well"))
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: fired.append(str(context["exception"])))
        await asyncio.sleep(1)
        return fired

    assert simulate(main) == ["reported", "well"]


def test_a_callback_may_set_the_next_timer() -> None:
    async def main() -> int:
        clock, timers = simulated()
        beats: list[int] = []

        def beat() -> None:
            beats.append(clock.monotonic_ms())
            if len(beats) < 100:
                timers.after(7, beat)

        beat()
        await asyncio.sleep(10)
        return beats[-1]

    assert simulate(main) == 99 * 7


def test_a_deadline_further_than_a_loop_can_count_is_met() -> None:
    async def main() -> int:
        clock, timers = simulated()
        await timers.sleep(400 * 24 * 3600 * 1000)
        return clock.monotonic_ms()

    assert simulate(main) == 400 * 24 * 3600 * 1000


def test_closed_timers_are_silent_and_take_no_more() -> None:
    async def main() -> None:
        _, timers = simulated()
        timers.after(10, pytest.fail)
        timers.close()
        await asyncio.sleep(1)
        with pytest.raises(RuntimeError):
            timers.after(10, pytest.fail)

    simulate(main)


def test_a_sleeper_that_is_cancelled_leaves_no_timer() -> None:
    async def main() -> None:
        _, timers = simulated()
        sleeper = asyncio.create_task(timers.sleep(1000))
        await asyncio.sleep(0)
        assert timers.count == 1
        sleeper.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeper
        assert timers.count == 0

    simulate(main)


def test_a_week_passes_at_once_on_a_real_loop() -> None:
    async def main() -> None:
        clock = AdjustableClock(RealClock())
        timers = Timers(clock)
        wall_ms = clock.wall_ms()
        sleeper = asyncio.create_task(timers.sleep(7 * 24 * 3600 * 1000))
        await asyncio.sleep(0)
        clock.advance(7 * 24 * 3600 * 1000)
        await asyncio.wait_for(sleeper, 10)
        assert clock.wall_ms() - wall_ms >= 7 * 24 * 3600 * 1000
        timers.close()
        clock.advance(1)
        with pytest.raises(ValueError, match="does not go back"):
            clock.advance(-1)

    loop = new_event_loop()
    loop.run_until_complete(main())
    loop.close()
    asyncio.run(main())


def test_clocks_wrapped_twice_tell_of_both_jumps() -> None:
    inner = AdjustableClock(RealClock())
    outer = AdjustableClock(inner)
    jumps: list[str] = []
    forget = outer.on_jump(lambda: jumps.append("jump"))
    inner.advance(5)
    outer.advance(5)
    forget()
    outer.advance(5)
    assert len(jumps) == 2
    inner_ns = inner.monotonic_ns()
    assert outer.monotonic_ns() - inner_ns >= 10_000_000
