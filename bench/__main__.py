"""The command line of the harness: `python -m bench quick|full|clients|codec|ground|path|list`.

It picks peers and workloads, runs them, prints the table and writes the CSV file; nothing is decided here.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from tools.cache import cache_directory

from bench.clients_python import print_clients
from bench.codec import print_codec
from bench.ground import print_ground
from bench.machine import describe
from bench.path import print_path
from bench.peers import PEERS
from bench.report import number, table, write_csv
from bench.run import Row, run_rounds
from bench.workloads import PACES, WORKLOADS, Pace, Workload


def main() -> int:
    options = _parser().parse_args()
    if options.what == "list":
        for workload in WORKLOADS:
            print(f"{workload.name:24} {'quick' if workload.in_quick else '':6} {workload.factor}")
        return 0
    print(describe(), flush=True)
    if options.what == "clients":
        print_clients()
        return 0
    if options.what == "codec":
        return 0 if print_codec() else 1
    if options.what == "path":
        print_path()
        return 0
    if options.what == "ground":
        return 0 if print_ground() else 1
    pace = PACES[options.what]
    peers = options.peers.split(",")
    workloads = _choose(pace, options.rows)
    started = time.monotonic()
    rows = run_rounds(workloads, peers, _with_rounds(pace, options.rounds), on_row=_tell)
    path = (
        Path(options.csv) if options.csv else cache_directory("bench") / time.strftime(f"{pace.name}-%Y%m%d-%H%M%S.csv")
    )
    write_csv(rows, path)
    print(f"\n{table(rows, peers)}\n\n{time.monotonic() - started:.0f} s; every run: {path}")
    return 1 if any(row.failure for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Apache Kafka and Barnabas, side by side.")
    parser.add_argument("what", choices=[*PACES, "clients", "codec", "ground", "path", "list"])
    parser.add_argument("--peers", default="kafka,barnabas", help=f"in this order, of: {', '.join(PEERS)}")
    parser.add_argument("--rows", default="", help="only workloads whose name holds one of these, separated by commas")
    parser.add_argument("--rounds", type=int, default=0, help="how many pairs")
    parser.add_argument("--csv", default="", help="where to write a line per run")
    return parser


def _choose(pace: Pace, wanted: str) -> list[Workload]:
    if wanted:
        words = wanted.split(",")
        return [workload for workload in WORKLOADS if any(word in workload.name for word in words)]
    return [workload for workload in WORKLOADS if workload.in_quick or pace.name == "full"]


def _with_rounds(pace: Pace, rounds: int) -> Pace:
    return replace(pace, rounds=rounds) if rounds else pace


def _tell(row: Row) -> None:
    value = (
        f"failed: {row.failure.splitlines()[0]}" if row.value is None else f"{number(row.value)} {row.workload.unit}"
    )
    print(f"  {row.round} {row.peer:10} {row.workload.name:24} {value}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
