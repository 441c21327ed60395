"""How long things take: a histogram of nanoseconds that costs a shift and an increment to fill.

Buckets are an eighth of a power of two wide, so a quantile is right to about 12 %. Count and sum are since the start;
quantiles are of the last one to two windows, which whoever owns the histogram turns with ``turn``.
"""

from __future__ import annotations

from typing import Final

SUB_BITS: Final = 3
BUCKETS: Final = 64 << SUB_BITS
_MASK: Final = (1 << SUB_BITS) - 1


class Histogram:
    __slots__ = ("_before", "_now", "count", "sum_ns")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ns = 0
        self._now = [0] * BUCKETS
        self._before = [0] * BUCKETS

    def record(self, duration_ns: int) -> None:
        if duration_ns < 0:  # a clock that a test has moved
            duration_ns = 0
        self.count += 1
        self.sum_ns += duration_ns
        self._now[_bucket(duration_ns)] += 1

    def turn(self) -> None:
        """A window is over: quantiles forget the one before it."""
        self._before, self._now = self._now, [0] * BUCKETS

    def quantiles_ms(self, quantiles: tuple[float, ...]) -> list[float]:
        """The duration below which each of these shares lies (ascending); 0 where nothing was recorded lately."""
        counts = [now + before for now, before in zip(self._now, self._before, strict=True)]
        total = sum(counts)
        if not total:
            return [0.0] * len(quantiles)
        found: list[float] = []
        seen = bucket = 0
        for quantile in quantiles:
            goal = quantile * total
            while bucket < BUCKETS - 1 and seen + counts[bucket] < goal:
                seen += counts[bucket]
                bucket += 1
            found.append(_middle_ns(bucket) / 1e6)
        return found


def _bucket(duration_ns: int) -> int:
    bits = duration_ns.bit_length()
    if bits <= SUB_BITS:
        return duration_ns
    bucket = (bits << SUB_BITS) | ((duration_ns >> (bits - SUB_BITS - 1)) & _MASK)
    return bucket if bucket < BUCKETS else BUCKETS - 1


def _middle_ns(bucket: int) -> float:
    bits = bucket >> SUB_BITS
    if bits <= SUB_BITS:
        return float(bucket)
    step = 1 << (bits - SUB_BITS - 1)
    return float((1 << (bits - 1)) + (bucket & _MASK) * step) + step / 2
