"""Pauses between attempts: they double up to a limit, and chance moves them a little."""

from __future__ import annotations

from barnabas.transport.backoff import JITTER_PERCENT, Backoff


def no_chance(limit: int) -> int:
    return JITTER_PERCENT


def test_pauses_double_up_to_the_limit_and_begin_again() -> None:
    backoff = Backoff(100, 1000, no_chance)
    assert [backoff.next_ms() for _ in range(6)] == [100, 200, 400, 800, 1000, 1000]
    backoff.reset()
    assert backoff.next_ms() == 100


def test_chance_moves_a_pause_by_a_fifth_at_most() -> None:
    assert Backoff(100, 1000, lambda limit: 0).next_ms() == 80
    assert Backoff(100, 1000, lambda limit: limit - 1).next_ms() == 120
