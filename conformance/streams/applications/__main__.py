"""Compare three applications with Kafka Streams: ``python -m conformance.streams.applications [NAME ...]``."""

from __future__ import annotations

import argparse
import sys

from conformance.streams.applications.inputs import INPUTS
from conformance.streams.applications.judge import compare


def main() -> int:
    parser = argparse.ArgumentParser(description="Run applications by Spark and by Kafka Streams, and compare them.")
    parser.add_argument("names", nargs="*", default=list(INPUTS), help="applications; all by default")
    parser.add_argument("--records", type=int, default=5_000, help="number of input records")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random records")
    options = parser.parse_args()
    differences = 0
    for name in options.names:
        difference = compare(name, seed=options.seed, records=options.records)
        differences += difference is not None
        print(difference or f"{name}: the output is equal to that of Kafka Streams", flush=True)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
