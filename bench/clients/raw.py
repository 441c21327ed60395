"""The raw load generator as a client: builds it once into the cache, runs it, and reads its line of JSON.

What the generator does is said at the top of `bench/raw/loadgen.c`. Fetch rows are filled first, and not measured while
they are.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.cache import cache_directory, locked

from bench.clients.outcome import ClientFailed, Outcome, run_program
from bench.clients.topics import topic_of
from bench.peers import Peer
from bench.workloads import Pace, Parameter, Workload

SOURCE = Path(__file__).parents[1] / "raw" / "loadgen.c"
_FILL_BATCH_BYTES = 1_000_000
_FILL_REQUESTS = 600
_MICROSECONDS = ("mean", "p50", "p99", "p99.9", "max")


def loadgen() -> Path:
    """The generator's program, built from its source if this source was not built before."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    target = cache_directory("loadgen") / f"loadgen-{digest}"
    with locked("loadgen"):
        if not target.exists():
            compiler = shutil.which("cc")
            if compiler is None:
                raise ClientFailed("`cc` is not installed: the raw load generator needs a C compiler")
            partial = target.with_suffix(".partial")
            flags = ("-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
            subprocess.run([compiler, *flags, "-o", str(partial), str(SOURCE)], check=True)
            partial.rename(target)
    return target


def command(mode: str, peer: Peer, topic: str, parameters: Mapping[str, Parameter]) -> list[str]:
    words = [str(loadgen()), mode, "--host", peer.host, "--port", str(peer.port), "--topic", topic]
    for name, value in parameters.items():
        words += [f"--{name}", str(value)]
    return words


def produce(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        return _run("produce", peer, topic, workload, pace)


def end_to_end(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        return _run("e2e", peer, topic, workload, pace)


def fetch(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        filling = {"depth": 5, "batch-bytes": _FILL_BATCH_BYTES, "record-bytes": 1000, "requests": _FILL_REQUESTS}
        run_program(peer, command("produce", peer, topic, filling))
        return _run("fetch", peer, topic, workload, pace)


def _run(mode: str, peer: Peer, topic: str, workload: Workload, pace: Pace) -> Outcome:
    times = {"seconds": pace.seconds, "warmup-seconds": pace.warmup_seconds, "bytes-max": pace.bytes_max}
    printed, cost, client_seconds = run_program(peer, command(mode, peer, topic, {**workload.parameters, **times}))
    result: dict[str, Any] = json.loads(printed)
    figures = {
        name: float(result[name])
        for name in (
            "requests_per_second",
            "records_per_second",
            "megabytes_per_second",
            "seconds",
            "bytes",
            "requests",
        )
    }
    figures |= {f"{name.replace('.', '')}_us": float(result["latency_us"][name]) for name in _MICROSECONDS}
    # The broker worked during the warm-up too, so its CPU is set against the bytes of the whole run.
    share = figures["requests"] / result["answered"] if result["answered"] and mode != "e2e" else 0.0
    if share and figures["bytes"]:
        figures["cpu_seconds_per_gigabyte"] = cost.cpu_seconds / (figures["bytes"] / share / 1e9)
        figures["cpu_us_per_request"] = cost.cpu_seconds * 1e6 / result["answered"]
    return Outcome(figures, cost, client_seconds)
