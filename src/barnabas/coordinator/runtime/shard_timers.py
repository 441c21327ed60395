"""The deadlines of one shard by key, on the broker's timers, cheap to push back.

Most deadlines here are sessions that every heartbeat moves on, so a later deadline only changes a number: the armed
timer finds out when it fires and goes on waiting. The runtime sets them; the shard hears of those that passed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from barnabas.world.clock import Clock
from barnabas.world.timers import Timer, Timers


class ShardTimers:
    def __init__(self, timers: Timers, clock: Clock, fire: Callable[[Hashable, int], None]) -> None:
        self._timers = timers
        self._clock = clock
        self._fire = fire
        self._deadlines: dict[Hashable, tuple[int, int]] = {}  # on the monotonic clock, and as the shard gave it
        self._armed: dict[Hashable, Timer] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def set(self, key: Hashable, deadline_ms: int | None, *, now_ms: int) -> None:
        armed = self._armed.get(key)
        if deadline_ms is None:
            self._deadlines.pop(key, None)
            if armed is not None:
                del self._armed[key]
                armed.cancel()
            return
        # As a delay from now: the wall clock may be set meanwhile, and nobody's session may end early for that.
        due_ms = self._clock.monotonic_ms() + max(0, deadline_ms - now_ms)
        self._deadlines[key] = (due_ms, deadline_ms)
        if armed is None or due_ms < armed.deadline_ms:
            if armed is not None:
                armed.cancel()
            self._arm(key, due_ms)

    def close(self) -> None:
        for timer in self._armed.values():
            timer.cancel()
        self._armed.clear()
        self._deadlines.clear()

    def _arm(self, key: Hashable, due_ms: int) -> None:
        self._armed[key] = self._timers.at(due_ms, lambda: self._on_due(key))

    def _on_due(self, key: Hashable) -> None:
        armed = self._armed.pop(key)
        due_ms, deadline_ms = self._deadlines[key]
        if due_ms > armed.deadline_ms:
            self._arm(key, due_ms)
            return
        del self._deadlines[key]
        self._fire(key, deadline_ms)
