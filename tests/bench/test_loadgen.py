"""The load generator tells the truth: every way in which a broker can fail it shows in its figures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from bench.clients.outcome import ClientFailed
from bench.clients.raw import loadgen, run_generator
from bench.peers import Peer
from bench.workload import QUICK
from lying_broker import LyingBroker

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the load generator needs a C compiler")


def run(broker: LyingBroker, mode: str, *words: str) -> tuple[int, dict[str, Any]]:
    command = [str(loadgen()), mode, "--port", str(broker.port), "--topic", "t", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_broker_that_does_its_work_has_no_errors() -> None:
    with LyingBroker() as broker:
        code, result = run(broker, "produce", "--requests", "200", "--connections", "2", "--depth", "5")
    assert code == 0
    assert (result["answered"], result["records"], result["errors"]) == (200, 200, 0)


def test_an_error_answer_is_an_error_and_fails_the_run() -> None:
    with LyingBroker(produce_error=6) as broker:
        code, result = run(broker, "produce", "--requests", "10")
    assert code == 2
    assert (result["errors"], result["first_error_code"]) == (10, 6)


def test_a_slow_broker_has_a_slow_median() -> None:
    with LyingBroker(delay_seconds=0.02) as broker:
        _, result = run(broker, "produce", "--requests", "10")
    assert result["latency_us"]["p50"] >= 19_000
    assert result["requests_per_second"] <= 50


def test_waiting_for_a_slow_broker_counts_at_a_fixed_rate() -> None:
    with LyingBroker(delay_seconds=0.02) as broker:
        _, result = run(broker, "produce", "--rate", "500", "--requests", "50")
    # The broker answers one request in 20 ms, but one is due every 2 ms: the last has waited for all before it.
    assert result["latency_us"]["max"] >= 800_000


def test_everything_fetched_is_counted() -> None:
    with LyingBroker(offsets=(0, 1, 2, 3)) as broker:
        code, result = run(broker, "fetch", "--passes", "3", "--check")
    assert code == 0
    assert (result["records"], result["gaps"], result["bad_crc"]) == (12, 0, 0)


def test_a_dropped_record_is_a_gap() -> None:
    with LyingBroker(offsets=(0, 1, 3)) as broker:
        code, result = run(broker, "fetch", "--passes", "1")
    assert code == 2
    assert result["gaps"] == 1


def test_a_flipped_bit_fails_the_checksum() -> None:
    with LyingBroker(offsets=(0, 1), is_damaged=True) as broker:
        code, result = run(broker, "fetch", "--passes", "1", "--check")
    assert code == 2
    assert result["bad_crc"] == 2


class StandIn(Peer):
    """A peer that is this very process, at the address of a broker that was started elsewhere."""

    name = "stand-in"
    pids = (os.getpid(),)

    def command(self) -> list[str]:
        raise AssertionError("it is never started")

    def is_alive(self) -> bool:
        return True


def test_a_broker_that_falls_behind_a_rate_has_no_latency_to_show() -> None:
    peer = StandIn()
    pace = replace(QUICK, seconds=0.5, warmup_seconds=0.0)
    with LyingBroker(delay_seconds=0.02) as broker:
        peer.port = broker.port
        run_generator("produce", peer, "t", {"rate": 20}, pace)
        with pytest.raises(ClientFailed, match=r"took [1-9]\d? of 500 requests/s"):
            run_generator("produce", peer, "t", {"rate": 500}, pace)
    peer.remove()


def test_a_reader_at_the_end_counts_only_what_is_new() -> None:
    with LyingBroker(offsets=(0, 1, 2)) as broker:
        code, result = run(broker, "tail", "--seconds", "0.2", "--connections", "3")
    assert code == 0
    assert result["answered"] > 0
    assert result["records"] == 0


def test_a_reader_that_stands_still_ends_by_its_time() -> None:
    with LyingBroker(offsets=(0, 1)) as broker:
        code, result = run(broker, "stall", "--seconds", "0.2", "--depth", "8")
    assert code == 0
    assert result["answered"] == 0
