"""Run the judge: ``python -m conformance.streams --records 10000 --seeds 1 2 3 [NAME ...]``."""

from __future__ import annotations

import argparse
import sys

from conformance.streams.judge import judge


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the Streams API with Apache Kafka's TopologyTestDriver.")
    parser.add_argument("names", nargs="*", help="topologies to compare; all by default")
    parser.add_argument("--records", type=int, default=10_000, help="number of input records for each seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds of the random records")
    parser.add_argument("--restart-every", type=int, default=0, help="restore all tasks after so many records")
    options = parser.parse_args()
    different = total = compared = 0
    for seed in options.seeds:
        for verdict in judge(seed, options.records, options.names, restart_every=options.restart_every):
            compared += 1
            total += verdict.records
            if verdict.difference is not None:
                different += 1
                print(f"seed {seed} {verdict.name}: {verdict.difference}")
    print(f"{compared} comparisons, {total} output records, {different} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
