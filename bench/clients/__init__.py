"""The programs that put load on a broker, one module each, all behind `run(peer, workload, pace) -> Outcome`.

The table here is what a workload may name as its client.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.clients import coordination, idle, java, librdkafka, neighbours, raw
from bench.clients.outcome import ClientFailed, HarnessFailed, Outcome
from bench.peers import Peer
from bench.workloads import Pace, Workload

CLIENTS: dict[str, Callable[[Peer, Workload, Pace], Outcome]] = {
    "start-up": idle.start_up,
    "idle": idle.idle,
    "raw-produce": raw.produce,
    "raw-fetch": raw.fetch,
    "raw-catch-up": raw.catch_up,
    "raw-e2e": raw.end_to_end,
    "raw-beside": neighbours.produce,
    "java-produce": java.produce,
    "java-consume": java.consume,
    "librdkafka-produce": librdkafka.produce,
    "first-record": coordination.first_record,
    "rebalance": coordination.rebalance,
    "form-groups": coordination.form_groups,
    "keep-groups": coordination.keep_groups,
    "transact": coordination.transact,
}

__all__ = ["CLIENTS", "ClientFailed", "HarnessFailed", "Outcome"]
