"""The counters and timings of one broker; the pages of ``health`` export them.

A component that has metrics of its own adds them with ``observed.metrics.add(source)``; a source is a function that
returns metric families when a scraper reads the page. The node creates one Observed.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.metrics.loop_watch import LoopWatch
from barnabas.broker.metrics.metadata import Commits, Elections
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.observe.failures import Failures
from barnabas.observe.log import logger
from barnabas.observe.metrics import Metrics
from barnabas.observe.request_times import RequestTimes, Timing
from barnabas.observe.traffic import Traffic
from barnabas.world.clock import Clock

log = logger("slow")

WINDOW_MS: Final = 60_000  # quantiles cover the last one to two windows
# Requests whose waiting time does not count as slow.
WAITING: Final = frozenset(("FetchConsumer", "FetchFollower", "JoinGroup", "SyncGroup"))


class Observed:
    def __init__(self, clock: Clock, *, slow_ms: int, failures: Failures | None = None) -> None:
        """``failures`` is the handler that the event loop has, if it has one of ours."""
        self._clock = clock
        self.failures = failures or Failures()
        self.metrics = Metrics()
        self.times = RequestTimes(clock.monotonic_ns, self._on_measured)
        self.strays = Traffic()  # requests for partitions that this broker does not host
        self.elections = Elections()
        self.commits = Commits(clock.monotonic_ns)
        self.loop = LoopWatch(clock)
        self.sign_ins: dict[tuple[str, str, bool], int] = {}  # count by listener, mechanism and success
        self._slow_ns = slow_ms * 1_000_000

    def signed_in(self, listener: str, mechanism: str, *, is_success: bool) -> None:
        key = (listener, mechanism, is_success)
        self.sign_ins[key] = self.sign_ins.get(key, 0) + 1

    def on_image(self, old: ClusterImage, new: ClusterImage, changes: MetadataChanges, append_time_ms: int) -> None:
        """Metadata was committed, in batches of which the last was written at ``append_time_ms``."""
        self.elections.on_image(old, new, changes)
        if not old.is_empty:
            latency_ms = max(0, self._clock.wall_ms() - append_time_ms)
            self.commits.took(latency_ms * 1_000_000, new.offset - old.offset)

    async def turn(self) -> None:
        """A window is over."""
        self.times.turn()
        self.loop.turn()

    def _on_measured(self, timing: Timing) -> None:
        if not self._slow_ns or timing.ready_ns - timing.arrived_ns < self._slow_ns:
            return
        queue_ns, local_ns, remote_ns = timing.parts_ns
        if queue_ns + local_ns + (0 if timing.kind.name in WAITING else remote_ns) >= self._slow_ns:
            log.warning(
                "slow request",
                request=timing.kind.name,
                client=timing.client_id,
                queue_ms=queue_ns // 1_000_000,
                local_ms=local_ns // 1_000_000,
                remote_ms=remote_ns // 1_000_000,
            )
