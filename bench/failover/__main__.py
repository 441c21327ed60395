"""``python -m bench.failover``: kills brokers under load, here and in Apache Kafka, and prints a table of the waits."""

from __future__ import annotations

import argparse
import csv
import tempfile
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from barnabas.testing import Cluster
from bench.failover.kafka_cluster import KafkaCluster
from bench.failover.load import CLIENTS
from bench.failover.run import Killable, failover, percentile, say, tell

PEERS = ("barnabas", "kafka")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.failover", description=__doc__)
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--client", nargs="+", choices=CLIENTS, default=list(CLIENTS))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument(
        "--minutes", type=float, default=60, help="after which no more brokers are killed, for each peer"
    )
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--keep", type=Path, help="a CSV file that the waits are added to; the table is of all in it")
    given = parser.parse_args()
    rows: list[tuple[str, str, float]] = []
    if given.keep is not None and given.keep.exists():
        with given.keep.open() as kept:
            rows = [(peer, client, float(seconds)) for peer, client, seconds in csv.reader(kept)]
    for peer in given.peer:
        with tempfile.TemporaryDirectory(prefix="failover-") as directory, _cluster(peer, directory) as cluster:
            waits = failover(
                cluster,
                given.client,
                given.kills,
                seed=given.seed,
                seconds_max=60 * given.minutes,
                say=partial(tell, peer),
            )
        rows += [(peer, client, seconds) for client, each in waits.items() for seconds in each]
        if given.keep is not None:
            with given.keep.open("w") as kept:
                csv.writer(kept).writerows(rows)
    print_table(rows)


def print_table(rows: list[tuple[str, str, float]]) -> None:
    say("\n| cluster | client | kills | median | p99 | longest |\n|---|---|---|---|---|---|")
    for peer, client in dict.fromkeys(row[:2] for row in rows):
        seconds = [row[2] for row in rows if row[:2] == (peer, client)]
        median, high = percentile(seconds, 0.5), percentile(seconds, 0.99)
        say(f"| {peer} | {client} | {len(seconds)} | {median:.2f} s | {high:.2f} s | {max(seconds):.2f} s |")


def _cluster(peer: str, directory: str) -> AbstractContextManager[Killable]:
    return KafkaCluster() if peer == "kafka" else Cluster(Path(directory) / "cluster")


if __name__ == "__main__":
    main()
