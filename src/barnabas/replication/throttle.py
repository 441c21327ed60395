"""A limit on the bytes a second that go into moving replicas, so that clients keep their share (KIP-73).

A topic says which of its replicas are throttled, a broker how much it spends on all of them together. Replicas that
are in sync are never held back: that would slow down the producers. The fetch handler asks for the leader's side, the
fetchers for the follower's.
"""

from __future__ import annotations

from typing import Final

BURST_MS: Final = 1_000  # what may flow at once, as time at the full rate
EVERYONE: Final = ("*",)


class Throttle:
    """What has flowed lately: it runs off at the rate that is allowed."""

    __slots__ = ("_bytes", "_seen_ms", "total_bytes")

    def __init__(self) -> None:
        self._bytes = 0.0
        self._seen_ms = 0
        self.total_bytes = 0

    def record(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        self.total_bytes += size_bytes

    def is_exceeded(self, bytes_per_second: int, now_ms: int) -> bool:
        elapsed_ms, self._seen_ms = now_ms - self._seen_ms, now_ms
        self._bytes = max(0.0, self._bytes - bytes_per_second * elapsed_ms / 1000)
        return self._bytes > bytes_per_second * BURST_MS / 1000


def is_throttled(replicas: tuple[str, ...], *, partition: int, broker_id: int) -> bool:
    """Whether a list of ``partition:broker`` pairs, or ``*``, names a replica."""
    return replicas == EVERYONE or f"{partition}:{broker_id}" in replicas
