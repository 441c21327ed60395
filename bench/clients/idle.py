"""The clients that do nothing: how long a broker took to start, and what it costs when nobody talks to it.

The start itself is timed by the peer, in the same way for all of them.
"""

from __future__ import annotations

import time

from bench import measure
from bench.clients.outcome import Outcome
from bench.peers import Peer
from bench.workloads import Pace, Workload

# What a broker does right after its start (compiling, settling) is not idling.
_SETTLE_SECONDS = 2.0


def start_up(peer: Peer, _workload: Workload, _pace: Pace) -> Outcome:
    now = measure.sample(peer.pids)
    return Outcome({"ready_seconds": peer.ready_seconds}, measure.cost(now, now))


def idle(peer: Peer, _workload: Workload, pace: Pace) -> Outcome:
    time.sleep(_SETTLE_SECONDS)
    before = measure.sample(peer.pids)
    time.sleep(pace.seconds)
    cost = measure.cost(before, measure.sample(peer.pids))
    figures = {"anonymous_megabytes": cost.anonymous_bytes / 1e6, "idle_cpu_percent": cost.utilisation * 100}
    return Outcome(figures, cost)
