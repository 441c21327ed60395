"""Everything that is counted and timed while a broker works, in one hand; the pages of ``health`` show it.

Parts of the broker that have numbers of their own add them with ``observed.metrics.add(source)``, where a source is a
function that gives families when somebody looks. The node makes one of these; the dispatcher and the handlers count.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.metrics.loop_watch import LoopWatch
from barnabas.broker.metrics.metadata import Commits, Elections
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.observe.log import logger
from barnabas.observe.metrics import Metrics
from barnabas.observe.request_times import RequestTimes, Timing
from barnabas.observe.traffic import Traffic
from barnabas.world.clock import Clock

log = logger("slow")

WINDOW_MS: Final = 60_000  # quantiles are of the last one to two of these
# Requests that wait for something to happen are not slow because of it.
WAITING: Final = frozenset(("FetchConsumer", "FetchFollower", "JoinGroup", "SyncGroup"))


class Observed:
    def __init__(self, clock: Clock, *, slow_ms: int) -> None:
        self._clock = clock
        self.metrics = Metrics()
        self.times = RequestTimes(clock.monotonic_ns, self._on_measured)
        self.strays = Traffic()  # what was asked of partitions that are not here
        self.elections = Elections()
        self.commits = Commits(clock.monotonic_ns)
        self.loop = LoopWatch(clock)
        self.sign_ins: dict[tuple[str, str, bool], int] = {}  # by listener, mechanism and success
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
