"""The ground floor: what Barnabas alone can do on this machine, in a minute. No peer, no ratios.

Start-up of the command and of the in-process broker, the time of a small command, bulk and small requests. It is what
one looks at before and after a change; `bench quick` says how it stands against Apache Kafka.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from bench.clients import CLIENTS, ClientFailed
from bench.machine import touch_page_cache
from bench.peers import BarnabasPeer, PeerFailed
from bench.peers.barnabas import barnabas_command
from bench.report import number
from bench.workloads import QUICK, WORKLOADS

_ROWS = ("batches 1 MB", "batches 16 KB", "small, pipelined", "small, synchronous", "fetch", "end-to-end 1k/s")
_FIGURES = (("cpu_us_per_request", "µs CPU per request"), ("cpu_seconds_per_gigabyte", "CPU s/GB"))
_OTHERS_CORES_MIN = 0.1  # below this the machine is quiet
_COMMAND_SECONDS_MAX = 60
_COMMAND_RUNS = 5
_IN_PROCESS = """
import time
started = time.monotonic()
from barnabas.testing import Broker
imported = time.monotonic()
with Broker() as broker:
    print(f"{imported - started} {time.monotonic() - imported} {broker.bootstrap_servers}")
"""


class GroundFailed(Exception):
    """A part of the product which a figure needs is not there, or does not work."""


def print_ground() -> bool:
    """Prints every figure, or the sentence that says why there is none; true when all are there."""
    is_complete = _line("in-process broker", _in_process)
    try:
        with BarnabasPeer() as peer:
            is_complete &= _line("`barnabas up` until it answers", lambda: f"{peer.ready_seconds * 1000:.0f} ms")
            is_complete &= _line("`barnabas up`, anonymous memory", lambda: _row(peer, "idle memory"))
            servers = ("--bootstrap-server", peer.bootstrap)
            is_complete &= _line("`barnabas topic list`", lambda: _command("topic", "list", *servers))
            is_complete &= _line("`barnabas --help`", lambda: _command("--help"))
            touch_page_cache(QUICK.bytes_max)
            for name in _ROWS:
                is_complete &= _line(name, lambda name=name: _row(peer, name))  # type: ignore[misc]
    except PeerFailed as error:
        print(error)
        return False
    return is_complete


def _line(name: str, measure: Callable[[], str]) -> bool:
    try:
        print(f"{name:36} {measure()}", flush=True)
    except (GroundFailed, ClientFailed) as error:
        print(f"{name:36} failed: {error}", flush=True)
        return False
    return True


def _row(peer: BarnabasPeer, name: str) -> str:
    workload = next(workload for workload in WORKLOADS if workload.name == name)
    outcome = CLIENTS[workload.client](peer, workload, QUICK)
    text = f"{number(outcome.figures[workload.metric])} {workload.unit}"
    if workload.metric == "p99_us":
        text += f", {number(outcome.figures['p50_us'])} µs p50"
    for figure, unit in _FIGURES:
        if figure in outcome.figures:
            text += f", {number(outcome.figures[figure])} {unit}"
    others = outcome.cost.others_cores(outcome.client_cpu_seconds)
    return text if others < _OTHERS_CORES_MIN else f"{text} (others had {others:.1f} cores)"


def _run(what: str, command: list[str]) -> tuple[str, float]:
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_SECONDS_MAX)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise GroundFailed(f"{what} ended with {done.returncode}: {' '.join(said)}")
    return done.stdout, time.monotonic() - started


def _in_process() -> str:
    printed, _ = _run("the in-process broker", [sys.executable, "-c", _IN_PROCESS])
    import_seconds, start_seconds = map(float, printed.split()[:2])
    return f"{start_seconds * 1000:.0f} ms, after {import_seconds * 1000:.0f} ms of imports"


def _command(*words: str) -> str:
    command = [str(barnabas_command()), *words]
    seconds = statistics.median(_run("the command", command)[1] for _ in range(_COMMAND_RUNS))
    return f"{seconds * 1000:.0f} ms, the middle of {_COMMAND_RUNS}"
