"""Runs workloads on peers in turn (A B A B …), so that a drift of the machine hits both alike.

Every round starts each peer once, warms it up and runs all rows on it. A row that fails is a row with a reason, and the
others go on. Called by the command line; `bench.report` prints the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bench.clients import CLIENTS, ClientFailed, HarnessFailed
from bench.machine import touch_page_cache
from bench.memory_group import memory_group
from bench.peers import Peer, PeerFailed, kind_of
from bench.workloads import WORKLOADS, Pace, Workload

_WARMUP = next(workload for workload in WORKLOADS if workload.client == "raw-produce")
# What does not learn needs no longer than its caches do.
_SHORT_WARMUP_SECONDS = 2.0
# Several nodes share the processors while they learn; two of them keep two processors busy.
_WARMUP_TIMES_MAX = 2
# What is started in a memory group is warmed up a second time by the log that fills it.
_GROUP_WARMUP_TIMES = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """One run of one workload on one peer. Without a value there is a failure that says why."""

    workload: Workload
    peer: str
    round: int
    value: float | None
    failure: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    has_run: bool = True  # False when the broker was not even asked: it did not start, or there was nothing to ask with


def run_rounds(
    workloads: Sequence[Workload], peer_names: Sequence[str], pace: Pace, *, on_row: Callable[[Row], None]
) -> list[Row]:
    """All rounds; `on_row` hears of every row as soon as it is there."""
    rows: list[Row] = []
    for number in range(1, pace.rounds + 1):
        for name in peer_names:
            for brokers, memory_bytes in sorted({_place(workload) for workload in workloads}):
                kind = kind_of(name, brokers)
                if kind is None:
                    continue
                wanted = [workload for workload in workloads if _place(workload) == (brokers, memory_bytes)]
                for row in _run_round(_suited(wanted, kind), kind, pace, number):
                    rows.append(row)
                    on_row(row)
    return rows


def _place(workload: Workload) -> tuple[int, int]:
    """What a peer is started anew for."""
    return workload.brokers, workload.memory_bytes


def _suited(workloads: Sequence[Workload], kind: type[Peer]) -> list[Workload]:
    return [
        workload
        for workload in workloads
        if (kind.stores_records or not workload.stores_records) and (kind.brokers != 2 or workload.is_for_two)
    ]


def _run_round(workloads: Sequence[Workload], kind: type[Peer], pace: Pace, number: int) -> Iterator[Row]:
    if not workloads:
        return
    peer = kind()
    try:
        with memory_group(workloads[0].memory_bytes) as peer.memory_group, peer:
            is_warm = False
            for workload in workloads:
                if workload.metric == "megabytes_per_second" and not workload.is_client_bound:
                    touch_page_cache(pace.bytes_max)
                if workload.stores_records and not is_warm:
                    _warm_up(peer, workload, pace)
                    is_warm = True
                yield run_once(peer, workload, pace, number)
    except PeerFailed as error:
        yield from (Row(workload, kind.name, number, None, str(error), has_run=False) for workload in workloads)


def run_once(peer: Peer, workload: Workload, pace: Pace, number: int) -> Row:
    """One workload on a running peer."""
    started = time.monotonic()
    try:
        outcome = CLIENTS[workload.client](peer, workload, pace)
    except ClientFailed as error:
        return Row(workload, peer.name, number, None, str(error), has_run=not isinstance(error, HarnessFailed))
    figures = {
        **outcome.figures,
        "broker_cores": outcome.cost.utilisation,
        "broker_anonymous_megabytes": outcome.cost.anonymous_bytes / 1e6,
        "client_cpu_seconds": outcome.client_cpu_seconds,
        "broker_disk_megabytes": outcome.cost.disk_read_bytes / 1e6,
        "others_cores": outcome.cost.others_cores(outcome.client_cpu_seconds),
        "row_seconds": time.monotonic() - started,
    }
    if workload.memory_bytes:
        figures["memory_group_megabytes"] = peer.memory_group.limit_bytes / 1e6 if peer.memory_group else 0.0
    return Row(workload, peer.name, number, figures[workload.metric], figures=figures)


def _warm_up(peer: Peer, first: Workload, pace: Pace) -> None:
    times = min(peer.brokers, _WARMUP_TIMES_MAX) * (_GROUP_WARMUP_TIMES if first.memory_bytes else 1)
    seconds = (
        pace.first_warmup_seconds * times if peer.learns else min(pace.first_warmup_seconds, _SHORT_WARMUP_SECONDS)
    )
    longer = replace(pace, seconds=seconds, warmup_seconds=0, bytes_max=pace.bytes_max * 4)
    # Its figures are thrown away; a broker that cannot do this fails in the row that follows, which says so.
    run_once(peer, replace(_WARMUP, replication_factor=first.replication_factor), longer, 0)
