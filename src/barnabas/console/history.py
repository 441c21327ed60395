"""Samples over time, in memory: bounded in length by time and in number by name. Pure; the sampler adds to it."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Final

SAMPLES_MAX: Final = 720  # an hour at one sample in 5 s
SERIES_MAX: Final = 5000


class Series:
    """Pairs of a time in milliseconds and a value."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[tuple[int, float]] = deque(maxlen=SAMPLES_MAX)

    def add(self, at_ms: int, value: float) -> None:
        self._samples.append((at_ms, value))

    @property
    def last(self) -> float | None:
        return self._samples[-1][1] if self._samples else None

    def points(self, count_max: int = SAMPLES_MAX) -> list[tuple[int, float]]:
        return list(self._samples)[-count_max:]

    def rate(self) -> float | None:
        """The growth for each second between the last two samples; None before the second one."""
        if len(self._samples) < 2:
            return None
        (before_ms, before), (after_ms, after) = self._samples[-2], self._samples[-1]
        return max(after - before, 0.0) * 1000 / max(after_ms - before_ms, 1)

    def rates(self) -> list[tuple[int, float]]:
        """The growth for each second at each sample but the first."""
        found = []
        for (before_ms, before), (at_ms, value) in pairwise(self._samples):
            found.append((at_ms, max(value - before, 0.0) * 1000 / max(at_ms - before_ms, 1)))
        return found


class History:
    """Series by name; names that got no sample in the last round are forgotten."""

    def __init__(self) -> None:
        self._series: dict[str, Series] = {}

    def add(self, at_ms: int, values: dict[str, float]) -> None:
        for name in [each for each in self._series if each not in values]:
            del self._series[name]
        for name, value in values.items():
            if name not in self._series and len(self._series) >= SERIES_MAX:
                continue
            self._series.setdefault(name, Series()).add(at_ms, value)

    def of(self, name: str) -> Series:
        return self._series.get(name) or Series()
