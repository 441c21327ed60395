"""The command line of the harness: `python -m bench quick|full|docs|clients|codec|ground|path|typed|typed-spark|list`.

It picks peers and workloads, runs them, prints the table and writes the CSV file; nothing is decided here. A full run
keeps its results in the documentation and can be made in parts: `--rows` adds to what is there, `--fresh` replaces it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tools.cache import cache_directory

from bench.clients_python import print_clients
from bench.codec import print_codec
from bench.ground import print_ground
from bench.machine import describe, versions
from bench.page import RESULTS, write_docs
from bench.path import print_path
from bench.peers import PEERS
from bench.report import is_error, number, table
from bench.results import load, next_pair, save
from bench.run import Row, run_rounds
from bench.typed import print_typed
from bench.typed_spark import print_typed_spark
from bench.workloads import PACES, WORKLOADS, Pace, Workload


def main() -> int:
    # Told to end, it leaves by way of what stops the brokers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = _parser().parse_args()
    if options.what == "list":
        for workload in WORKLOADS:
            print(f"{workload.name:24} {'quick' if workload.in_quick else '':6} {workload.factor}")
        return 0
    if options.what == "docs":
        write_docs()
        return 0
    print(describe(), flush=True)
    if options.what == "clients":
        print_clients()
        return 0
    if options.what == "codec":
        return 0 if print_codec() else 1
    if options.what == "typed":
        return 0 if print_typed() else 1
    if options.what == "typed-spark":
        print_typed_spark()
        return 0
    if options.what == "path":
        print_path()
        return 0
    if options.what == "ground":
        return 0 if print_ground() else 1
    return _compare(options, PACES[options.what])


def _compare(options: argparse.Namespace, pace: Pace) -> int:
    pace = replace(pace, rounds=options.rounds) if options.rounds else pace
    peers = options.peers.split(",") if options.peers else list(pace.peers)
    workloads = _choose(pace, options.rows)
    path = Path(options.csv) if options.csv else _default_path(pace)
    kept, _ = load(path)
    if options.fresh:
        kept = [row for row in kept if row.workload not in workloads or row.peer not in peers]
    before, rows, started = next_pair(kept), [], time.monotonic()

    def take(row: Row) -> None:
        # Written at once: what is known is not lost when a long run is stopped.
        rows.append(replace(row, round=row.round + before.get((row.workload.name, row.peer), 0)))
        save(path, _in_order([*kept, *rows]), [describe(), versions()])
        _tell(row)

    run_rounds(workloads, peers, pace, on_row=take)
    print(f"\n{table(_in_order(rows), peers)}\n\n{time.monotonic() - started:.0f} s; every run: {path}")
    if path == RESULTS:
        write_docs()
    return 1 if any(is_error(row) for row in rows) else 0


def _default_path(pace: Pace) -> Path:
    if pace.name == "full":
        return RESULTS
    return cache_directory("bench") / time.strftime(f"{pace.name}-%Y%m%d-%H%M%S.csv")


def _in_order(rows: Sequence[Row]) -> list[Row]:
    """As the report has them: by workload, then pair by pair."""
    order = {workload.name: number for number, workload in enumerate(WORKLOADS)}
    return sorted(rows, key=lambda row: (order[row.workload.name], row.round, list(PEERS).index(row.peer)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Apache Kafka and Barnabas, side by side.")
    parser.add_argument(
        "what", choices=[*PACES, "docs", "clients", "codec", "ground", "path", "typed", "typed-spark", "list"]
    )
    parser.add_argument(
        "--peers", default="", help=f"in this order, of: {', '.join(PEERS)}; a full run takes all of them"
    )
    parser.add_argument(
        "--rows", default="", help="only workloads whose name or section is one of these, separated by semicolons"
    )
    parser.add_argument("--rounds", type=int, default=0, help="how many pairs")
    parser.add_argument("--csv", default="", help="where to write a line per run")
    parser.add_argument("--fresh", action="store_true", help="forget the runs that these rows have had before")
    return parser


def _choose(pace: Pace, wanted: str) -> list[Workload]:
    if not wanted:
        return [workload for workload in WORKLOADS if workload.in_quick or pace.name == "full"]
    words = {word.strip() for word in wanted.split(";")}
    if unknown := words - {name for workload in WORKLOADS for name in (workload.name, workload.section)}:
        raise SystemExit(f"there is no row or section {', '.join(sorted(unknown))}: see `python -m bench list`")
    return [workload for workload in WORKLOADS if workload.name in words or workload.section in words]


def _tell(row: Row) -> None:
    value = (
        f"failed: {row.failure.splitlines()[0]}" if row.value is None else f"{number(row.value)} {row.workload.unit}"
    )
    print(f"  {row.round} {row.peer:10} {row.workload.name:24} {value}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
