"""What coordinators are measured by: members of groups that rebalance, many groups at once, and transactions.

The load is a program of its own (`group_load`, `transaction_load`) that speaks the protocol itself, so that what is
measured is the broker and not somebody's client. A program says when the part begins that counts.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys

from bench import measure
from bench.clients.outcome import CLIENT_SECONDS_MAX, ClientFailed, Outcome
from bench.clients.topics import topic_of
from bench.peers import Peer
from bench.workloads import Pace, Workload

BEGINS = "BEGINS"
# A pace's seconds are those of bulk load; what members do by the clock needs a while to even out.
_ACTIVE_SECONDS_MIN = 6.0


def first_record(peer: Peer, workload: Workload, _pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        figures, cost, client_seconds = _run(peer, "first_record", topic, workload.parameters["groups"])
    return Outcome(figures, cost, client_seconds)


def rebalance(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    figures, cost, client_seconds = _run(
        peer, "group_load", "rebalance", workload.parameters["members"], max(pace.seconds, 3.0)
    )
    figures["cpu_ms_per_rebalance"] = cost.cpu_seconds * 1000 / figures["rebalances"]
    return Outcome(figures, cost, client_seconds)


def form_groups(peer: Peer, workload: Workload, _pace: Pace) -> Outcome:
    figures, cost, client_seconds = _run(peer, "group_load", "form", workload.parameters["groups"], 0)
    figures["cpu_seconds"] = cost.cpu_seconds
    return Outcome(figures, cost, client_seconds)


def keep_groups(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    seconds = max(pace.seconds, _ACTIVE_SECONDS_MIN)
    figures, cost, client_seconds = _run(peer, "group_load", "keep", workload.parameters["groups"], seconds)
    figures["cpu_percent"] = cost.utilisation * 100
    return Outcome(figures, cost, client_seconds)


def transact(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        figures, cost, client_seconds = _run(
            peer, "transaction_load", topic, workload.partitions, workload.parameters["producers"], pace.seconds
        )
    figures["cpu_us_per_transaction"] = cost.cpu_seconds * 1e6 / figures["transactions"]
    return Outcome(figures, cost, client_seconds)


def _run(peer: Peer, module: str, *arguments: object) -> tuple[dict[str, float], measure.Cost, float]:
    """The figures that a program prints, and what the broker spent from where the program said that it begins."""
    command = [sys.executable, "-m", f"bench.clients.{module}", peer.host, str(peer.port), *map(str, arguments)]
    used_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        first = program.stdout.readline().strip()
        before = measure.sample(peer.pids)
        printed = program.stdout.read()
        after = measure.sample(peer.pids)
        said = program.stderr.read()
        try:
            code = program.wait(CLIENT_SECONDS_MAX)
        except subprocess.TimeoutExpired as error:
            program.kill()
            raise ClientFailed(f"{module} did not end") from error
    if code != 0 or first != BEGINS:
        raise ClientFailed(f"{module} ended with {code}: {' | '.join(said.strip().splitlines()[-3:])}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    client_seconds = used.ru_utime + used.ru_stime - used_before.ru_utime - used_before.ru_stime
    figures: dict[str, float] = json.loads(printed)
    return figures, measure.cost(before, after), client_seconds
