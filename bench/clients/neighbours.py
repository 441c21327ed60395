"""A steady producer beside others: what it waits for while they read, stand still, come for cold data or write in bulk.

The producer sends at a fixed rate and its latency counts from the moment at which a request was due. The others are the
same generator in processes of their own, started before it and stopped after it; one that fails fails the row.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from bench.clients.outcome import ClientFailed, Outcome, children_seconds
from bench.clients.raw import command, fill, fill_cold, run_generator
from bench.clients.topics import topic_of
from bench.machine import evict
from bench.peers import Peer
from bench.workload import Pace, Parameter, Workload

_NEIGHBOURS = ("tails", "stalled", "cold", "bulk")
_OTHER_BYTES = 1_000_000_000
_BULK_BATCH_BYTES = 1_000_000
_STALLED_REQUESTS = 64
_EVICT_SECONDS = 0.25
# Neighbours outlive the producer, so that it is never alone: they are stopped.
_MORE_SECONDS = 60.0
_END_SECONDS_MAX = 10.0


def produce(peer: Peer, workload: Workload, pace: Pace) -> Outcome:
    parameters = {name: value for name, value in workload.parameters.items() if name not in _NEIGHBOURS}
    kind = next((name for name in _NEIGHBOURS if name in workload.parameters), "")
    used_before = children_seconds()
    with ExitStack() as stack:
        topic = stack.enter_context(topic_of(peer, workload))
        if kind == "tails":
            tails: dict[str, Parameter] = {"connections": workload.parameters["tails"]}
            stack.enter_context(_neighbour(peer, "tail", topic, tails))
        elif kind:
            other = stack.enter_context(topic_of(peer, workload))
            stack.enter_context(_beside(kind, peer, other, workload, pace))
        longer = replace(pace, seconds=max(pace.seconds, workload.seconds_min))
        outcome = run_generator("produce", peer, topic, parameters, longer)
    # Neighbours are clients too: what they used is not the machine's noise.
    return replace(outcome, client_cpu_seconds=children_seconds() - used_before)


@contextmanager
def _beside(kind: str, peer: Peer, other: str, workload: Workload, pace: Pace) -> Iterator[None]:
    if kind == "bulk":
        bulk = {"batch-bytes": _BULK_BATCH_BYTES, "record-bytes": 1000, "depth": 5, "rate": workload.parameters["bulk"]}
        with _neighbour(peer, "produce", other, bulk):
            yield
        return
    if kind == "stalled":
        fill(peer, other, _OTHER_BYTES)
        with _neighbour(peer, "stall", other, {"depth": _STALLED_REQUESTS}):
            yield
        return
    fill_cold(peer, other, pace)
    with _kept_cold(peer, other), _neighbour(peer, "fetch", other, {"connections": 1}):
        yield


@contextmanager
def _neighbour(peer: Peer, mode: str, topic: str, parameters: dict[str, Parameter]) -> Iterator[None]:
    words = command(mode, peer, topic, {**parameters, "seconds": _MORE_SECONDS})
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield
            if process.poll() is not None:
                raise ClientFailed(f"the neighbour ended before the producer did: {process.stderr.read().strip()}")
        finally:
            process.kill()
            process.wait(_END_SECONDS_MAX)


@contextmanager
def _kept_cold(peer: Peer, topic: str) -> Iterator[None]:
    """What the reader has read goes out of the page cache again, so that its next pass is as cold as its first."""
    if peer.memory_group is not None:
        yield  # the next gigabytes push it out
        return
    directories = peer.topic_directories(topic)
    is_over = threading.Event()

    def work() -> None:
        while not is_over.wait(_EVICT_SECONDS):
            evict(directories)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
