"""What a client reports, and how a client program is run so that its own CPU and the broker's are both known.

Every client module uses this; the figures' names are those of the workloads' `metric` and of the columns of the CSV
file.
"""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from bench import measure
from bench.peers import Peer

CLIENT_SECONDS_MAX = 300


class ClientFailed(Exception):
    """The client could not do its work, or the broker answered with errors: the row has no figure."""


class HarnessFailed(ClientFailed):
    """The harness could not do what the row says, whoever the broker is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one run, and what it cost the broker and the client."""

    figures: dict[str, float]
    cost: measure.Cost
    client_cpu_seconds: float = 0.0


def run_program(peer: Peer, command: Sequence[str]) -> tuple[str, measure.Cost, float]:
    """Runs a client to its end. Returns what it printed, what the broker spent, and what the client spent."""
    before, used_before = measure.sample(peer.pids), children_seconds()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLIENT_SECONDS_MAX)
    except subprocess.TimeoutExpired as error:
        raise ClientFailed(f"{command[0]} did not end in {CLIENT_SECONDS_MAX} s") from error
    cost = measure.cost(before, measure.sample(peer.pids))
    if not peer.is_alive():
        raise ClientFailed(f"{peer.name} died:\n{peer.log_end()}")
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-5:]
        raise ClientFailed(f"the client ended with {done.returncode}: {' | '.join(said)}")
    return done.stdout, cost, children_seconds() - used_before


def children_seconds() -> float:
    """CPU of all programs that this process has started and seen the end of."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
