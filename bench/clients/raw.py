"""The raw load generator as a client: builds it once into the cache, runs it, and reads its line of JSON.

What the generator does is said at the top of `bench/raw/loadgen.c`. Fetch rows are filled first, and not measured while
they are. A produce beside others is in `neighbours.py`.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.cache import cache_directory, locked

from barnabas.wire.compression import Codec
from barnabas.wire.records import encode_batch
from bench.clients.outcome import ClientFailed, HarnessFailed, Outcome, run_program
from bench.clients.topics import topic_of
from bench.machine import evict, settle
from bench.peers import Peer
from bench.workload import Pace, Parameter, Workload

SOURCE = Path(__file__).parents[1] / "raw" / "loadgen.c"
_FILL_BATCH_BYTES = 1_000_000
_FILL_BYTES = 600_000_000
_FIGURES = ("requests_per_second", "records_per_second", "megabytes_per_second", "seconds", "bytes", "requests")
# A broker that falls behind a rate is not sent all that was due, so the latencies of what it was sent say too little.
_RATE_KEPT_MIN = 0.9
# What is called cold comes from the disk, at least most of it.
_COLD_SHARE_MIN = 0.5
_MICROSECONDS = ("mean", "p50", "p99", "p99.9", "max")


def loadgen() -> Path:
    """The generator's program, built from its source if this source was not built before."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    target = cache_directory("loadgen") / f"loadgen-{digest}"
    with locked("loadgen"):
        if not target.exists():
            compiler = shutil.which("cc")
            if compiler is None:
                raise HarnessFailed("`cc` is not installed: the raw load generator needs a C compiler")
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
    parameters = dict(workload.parameters)
    if codec := parameters.pop("compression", None):
        parameters["batch-file"] = str(_compressed_batch(peer.directory, str(codec), parameters))
    with topic_of(peer, workload) as topic:
        return run_generator("produce", peer, topic, parameters, pace)


def _compressed_batch(directory: Path, codec: str, parameters: Mapping[str, Parameter]) -> Path:
    """A batch as a client makes it, of records that look like events; its size is that before it is compressed."""
    size = int(parameters["record-bytes"])
    text = "".join(
        f'{{"id": {number}, "user": "user-{number % 97}", "amount": {number * 7919 % 1000}}}, '
        for number in range(size)
    )
    count = int(parameters["batch-bytes"]) // size
    values = [text[number * size : (number + 1) * size].encode() for number in range(count)]
    path = directory / f"batch.{codec}"
    path.write_bytes(encode_batch([(0, None, value, ()) for value in values], codec=Codec[codec.upper()]))
    return path


def end_to_end(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        longer = replace(pace, seconds=max(pace.seconds, workload.seconds_min))
        return run_generator("e2e", peer, topic, workload.parameters, longer)


def fill(peer: Peer, topic: str, size_bytes: int) -> None:
    """Writes a topic full of batches of 1 MB."""
    requests = size_bytes // _FILL_BATCH_BYTES
    filling = {"depth": 5, "batch-bytes": _FILL_BATCH_BYTES, "record-bytes": 1000, "requests": requests}
    run_program(peer, command("produce", peer, topic, filling))


def fetch(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    with topic_of(peer, workload) as topic:
        fill(peer, topic, _FILL_BYTES)
        return run_generator("fetch", peer, topic, workload.parameters, pace)


def fill_cold(peer: Peer, topic: str, pace: Pace) -> None:
    """Writes more than the broker's memory group holds; without a group, the page cache is made to forget it."""
    fill(peer, topic, pace.cold_bytes)
    forget = settle if peer.memory_group is not None else evict
    forget(peer.topic_directories(topic))


def catch_up(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    """One pass over a log that is not in the memory that the broker has."""
    with topic_of(peer, workload) as topic:
        fill_cold(peer, topic, pace)
        parameters = {**workload.parameters, "passes": 1}
        outcome = run_generator("fetch", peer, topic, parameters, replace(pace, warmup_seconds=0.0))
    _check_cold(outcome)
    return outcome


def _check_cold(outcome: Outcome) -> None:
    read, on_disk = outcome.figures["bytes"], outcome.cost.disk_read_bytes
    if on_disk < read * _COLD_SHARE_MIN:
        raise HarnessFailed(f"only {on_disk / 1e6:.0f} of {read / 1e6:.0f} MB came from the disk")


def run_generator(mode: str, peer: Peer, topic: str, parameters: Mapping[str, Parameter], pace: Pace) -> Outcome:
    times = {"seconds": pace.seconds, "warmup-seconds": pace.warmup_seconds, "bytes-max": pace.bytes_max}
    printed, cost, client_seconds = run_program(peer, command(mode, peer, topic, {**parameters, **times}))
    result: dict[str, Any] = json.loads(printed)
    _check_rate(result, float(parameters.get("rate", 0)))
    figures = {name: float(result[name]) for name in _FIGURES}
    figures |= {f"{name.replace('.', '')}_us": float(result["latency_us"][name]) for name in _MICROSECONDS}
    # The broker worked during the warm-up too, so its CPU is set against the bytes of the whole run.
    share = figures["requests"] / result["answered"] if result["answered"] and mode != "e2e" else 0.0
    if share and figures["bytes"]:
        figures["cpu_seconds_per_gigabyte"] = cost.cpu_seconds / (figures["bytes"] / share / 1e9)
        figures["cpu_us_per_request"] = cost.cpu_seconds * 1e6 / result["answered"]
    return Outcome(figures, cost, client_seconds)


def _check_rate(result: Mapping[str, Any], rate: float) -> None:
    kept = result["requests"] / result["seconds"] if result["seconds"] else 0.0
    if not result["requests"] or kept < rate * _RATE_KEPT_MIN:
        taken = result["sent_per_second"] if rate else 0.0
        raise ClientFailed(f"the broker took {taken:.0f} of {rate:.0f} requests/s")
