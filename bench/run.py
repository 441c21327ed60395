"""Runs workloads on peers in turn (A B A B …), so that a drift of the machine hits both alike.

Every round starts each peer once, warms it up and runs all rows on it. A row that fails is a row with a reason, and the
others go on. Called by the command line; `bench.report` prints the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bench.clients import CLIENTS, ClientFailed
from bench.machine import touch_page_cache
from bench.peers import PEERS, Peer, PeerFailed
from bench.workloads import WORKLOADS, Pace, Workload

_WARMUP = next(workload for workload in WORKLOADS if workload.client == "raw-produce")


@dataclass(frozen=True, slots=True)
class Row:
    """One run of one workload on one peer. Without a value there is a failure that says why."""

    workload: Workload
    peer: str
    round: int
    value: float | None
    failure: str = ""
    figures: dict[str, float] = field(default_factory=dict)


def run_rounds(
    workloads: Sequence[Workload], peer_names: Sequence[str], pace: Pace, *, on_row: Callable[[Row], None]
) -> list[Row]:
    """All rounds; `on_row` hears of every row as soon as it is there."""
    rows: list[Row] = []
    for number in range(1, pace.rounds + 1):
        for name in peer_names:
            for row in _run_round(workloads, PEERS[name], pace, number):
                rows.append(row)
                on_row(row)
    return rows


def _run_round(workloads: Sequence[Workload], kind: type[Peer], pace: Pace, number: int) -> Iterator[Row]:
    wanted = [workload for workload in workloads if kind.stores_records or not workload.stores_records]
    if not wanted:
        return
    try:
        with kind() as peer:
            is_warm = False
            for workload in wanted:
                if workload.metric == "megabytes_per_second":
                    touch_page_cache(pace.bytes_max * 3 // 2)
                if workload.stores_records and not is_warm:
                    _warm_up(peer, pace)
                    is_warm = True
                yield run_once(peer, workload, pace, number)
    except PeerFailed as error:
        yield from (Row(workload, kind.name, number, None, str(error)) for workload in wanted)


def run_once(peer: Peer, workload: Workload, pace: Pace, number: int) -> Row:
    """One workload on a running peer."""
    try:
        outcome = CLIENTS[workload.client](peer, workload, pace)
    except ClientFailed as error:
        return Row(workload, peer.name, number, None, str(error))
    figures = {
        **outcome.figures,
        "broker_cores": outcome.cost.utilisation,
        "broker_anonymous_megabytes": outcome.cost.anonymous_bytes / 1e6,
        "client_cpu_seconds": outcome.client_cpu_seconds,
        "others_cores": outcome.cost.others_cores(outcome.client_cpu_seconds),
    }
    return Row(workload, peer.name, number, figures[workload.metric], figures=figures)


def _warm_up(peer: Peer, pace: Pace) -> None:
    longer = replace(pace, seconds=pace.first_warmup_seconds, warmup_seconds=0)
    # Its figures are thrown away; a broker that cannot do this fails in the row that follows, which says so.
    run_once(peer, _WARMUP, longer, 0)
