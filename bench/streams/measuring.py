"""Measures one side with one workload, from outside: committed offsets, records of the output, processor time."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Final

from barnabas import ConsumerSettings, ProducerSettings, Settings, TopicPartition, blocking
from barnabas.client.offsets import LATEST
from bench.measure import Sample, cost
from bench.streams.sides import Side
from bench.streams.workloads import PARTITIONS, WORKLOADS, probe

__all__ = ["Figures", "SideFailed", "measure"]

LOOK_SECONDS: Final = 0.1
CATCH_UP_SECONDS_MAX: Final = 1800
SETTLE_SECONDS: Final = 3.0
IDLE_SECONDS: Final = 10.0
PROBES_PER_SECOND: Final = 50


class SideFailed(Exception):
    """A side did not read its input in time; the message has its log."""


@dataclass
class Figures:
    """What was measured; None where a side or a workload does not have it."""

    side: str
    workload: str
    keys: int
    records_per_second: float
    cpu_us_per_record: float
    start_seconds: float
    memory_mb: float
    idle_percent: float
    p50_ms: float | None = None
    p99_ms: float | None = None
    restart_seconds: float | None = None

    def as_row(self) -> dict[str, object]:
        return asdict(self)


class _Offsets:
    """How many records of the input a side has committed."""

    def __init__(self, side: Side, admin: blocking.Admin) -> None:
        self._side = side
        self._admin = admin

    def read(self) -> int:
        found = self._admin.group_offsets(self._side.group)
        return sum(max(0, offset.offset) for place, offset in found.items() if place.topic in ("left", "right"))

    def wait(self, count: int) -> list[tuple[Sample, int]]:
        """Look until so many records are committed; returns a sample of the processes for each change."""
        deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
        seen: list[tuple[Sample, int]] = []
        while not seen or seen[-1][1] < count:
            if time.monotonic() > deadline or any(each.poll() is not None for each in self._side.processes):
                raise SideFailed(
                    f"{self._side.group} has committed {self.read()} of {count} records:\n{self._side.log()}"
                )
            now = self.read()
            if now and (not seen or now != seen[-1][1]):
                seen.append((self._side.sample(), now))
            time.sleep(LOOK_SECONDS)
        return seen


def measure(side: Side, *, total: int, keys: int, probe_seconds: int) -> Figures:
    """Let a side read ``total`` records that are there, then probes; then crash it and start it again."""
    workload = WORKLOADS[side.workload]
    with blocking.Admin(Settings.of({"bootstrap.servers": side.servers})) as admin:
        offsets = _Offsets(side, admin)
        started = time.monotonic()
        side.start()
        begun = side.sample()
        seen = offsets.wait(total)
        first, last = seen[0], seen[-1]
        # From the first commit on; with one commit alone, for example of a small input, the start counts too.
        spent = cost(first[0] if len(seen) > 1 else begun, last[0])
        count = last[1] - first[1] if len(seen) > 1 else last[1]
        time.sleep(SETTLE_SECONDS)
        before = side.sample()
        time.sleep(IDLE_SECONDS)
        idle = cost(before, side.sample())
        figures = Figures(
            side.name,
            side.workload,
            keys,
            records_per_second=count / spent.wall_seconds,
            cpu_us_per_record=spent.cpu_seconds / count * 1e6,
            start_seconds=first[0].monotonic_seconds - started,
            memory_mb=max(each.anonymous_bytes for each, _ in seen) / 1e6,
            idle_percent=100 * idle.utilisation,
        )
        if workload.has_latency:
            latencies = sorted(_latencies(side, probe_seconds))
            if latencies:
                figures.p50_ms = latencies[len(latencies) // 2]
                figures.p99_ms = latencies[min(len(latencies) - 1, len(latencies) * 99 // 100)]
        if workload.is_stateful:
            figures.restart_seconds = _restart(side, offsets)
        return figures


def _latencies(side: Side, seconds: int) -> list[float]:
    """Milliseconds from the send of a record until its committed result is read."""
    topic = f"out-{side.name}"
    settings = {"bootstrap.servers": side.servers, "isolation.level": "read_committed"}
    found: list[float] = []
    count = seconds * PROBES_PER_SECOND
    with (
        blocking.Consumer(ConsumerSettings.of(settings)) as consumer,
        blocking.Producer(ProducerSettings.of({"bootstrap.servers": side.servers})) as producer,
    ):
        consumer.assign({TopicPartition(topic, number): LATEST for number in range(PARTITIONS)})
        consumer.poll(timeout_ms=1000)
        sent = 0
        start = time.monotonic()
        deadline = start + seconds + 30
        while len(found) < count and time.monotonic() < deadline:
            while sent < count and time.monotonic() - start >= sent / PROBES_PER_SECOND:
                producer.send("left", probe(2, int(time.time() * 1000)), key=f"key-{sent % 1000}".encode())
                sent += 1
            for record in consumer.poll(timeout_ms=10):
                at = _sent_ms(record.value)
                if at:
                    found.append(time.time() * 1000 - at)
    return found


def _sent_ms(value: bytes | None) -> int:
    if value is None or b'"sent":' not in value:
        return 0
    return int(value.split(b'"sent":')[1].split(b",")[0].split(b"}")[0])


def _restart(side: Side, offsets: _Offsets) -> float:
    """Seconds from the start after a crash until a new record is committed."""
    side.end(hard=True)
    before = offsets.read()
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": side.servers})) as producer:
        producer.send("left", probe(2, 0), key=b"key-1")
    started = time.monotonic()
    side.start()
    return offsets.wait(before + 1)[-1][0].monotonic_seconds - started
