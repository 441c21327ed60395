"""Sessions end, make room for each other, and have tokens that only the console can make; histories stay bounded."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.console.cached import Cached
from barnabas.console.history import SAMPLES_MAX, History
from barnabas.console.sessions import IDLE_SECONDS_MAX, SESSIONS_MAX, Login, Sessions


def test_a_token_is_valid_for_its_session_only() -> None:
    sessions = Sessions()
    one, other = sessions.new_id(), sessions.new_id()
    assert sessions.is_token(one, sessions.token(one))
    assert not sessions.is_token(one, sessions.token(other))
    assert not sessions.is_token("", sessions.token(""))
    assert not Sessions().is_token(one, sessions.token(one))


def test_an_idle_session_ends() -> None:
    sessions = Sessions()
    session = sessions.log_in(Login("ann"), now=0.0)
    assert sessions.find(session, now=IDLE_SECONDS_MAX) is not None
    assert sessions.find(session, now=2 * IDLE_SECONDS_MAX + 1) is None


def test_the_oldest_session_makes_room() -> None:
    sessions = Sessions()
    made = [sessions.log_in(Login(f"u{number}"), now=float(number)) for number in range(SESSIONS_MAX + 1)]
    assert sessions.find(made[0], now=float(SESSIONS_MAX)) is None
    assert sessions.find(made[-1], now=float(SESSIONS_MAX)) is not None


def test_credentials_are_not_shown() -> None:
    assert "hush" not in repr(Login("ann", {"sasl.password": "hush"}))


def test_a_history_is_bounded_and_forgets_names_that_are_gone() -> None:
    history = History()
    for at in range(SAMPLES_MAX + 10):
        history.add(at * 1000, {"a": float(at), "b": 1.0} if at < 5 else {"a": float(at)})
    assert len(history.of("a").points()) == SAMPLES_MAX
    assert history.of("a").rate() == 1.0
    assert history.of("b").points() == []


def test_a_value_is_loaded_once_for_all_callers() -> None:
    loads = 0

    async def load() -> int:
        nonlocal loads
        loads += 1
        await asyncio.sleep(0)
        return loads

    async def run() -> None:
        cached = Cached(load, seconds=60)
        assert await asyncio.gather(*(cached.get() for _ in range(10))) == [1] * 10
        cached.forget()
        assert await cached.get() == 2

    asyncio.run(run())


def test_a_load_that_fails_is_tried_again() -> None:
    async def load() -> int:
        raise ValueError("down")

    async def run() -> None:
        cached = Cached(load, seconds=60)
        for _ in range(2):
            with pytest.raises(ValueError, match="down"):
                await cached.get()

    asyncio.run(run())
