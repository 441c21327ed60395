"""A driver for the tests that kill: a stateful application that writes each number once if its state is right.

Run as a program, like ``copying.py``: servers, source, target, checkpoint directory, master. The application counts
the numbers of each remainder, after a repartition, and writes the number that the count stands for: the record with
count c and remainder r is number c * REMAINDERS + r. A count that was lost or made twice is a number that is missing or
doubled.
"""

from __future__ import annotations

import sys
import time

import barnabas.spark
from barnabas.streams import App
from barnabas.streams.host.runner import start

LOOK_SECONDS = 0.2
REMAINDERS = 40
CONFIG = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.barnabas.batch.records.max": "400",
}

app = App("counting")
(
    app.stream("input", value=int)
    .group_by(lambda number: number % REMAINDERS, key=int)
    .aggregate(lambda: -1, lambda count, number: count + 1, value=int, store="counts")
    .to_stream()
    .map(lambda remainder, count: (remainder, count * REMAINDERS + remainder), key=int, value=int)
    .to("output")
)


def run_until_killed(app: App) -> None:
    """Run an application with the arguments of the program; a failure that it does not survive starts it again."""
    servers, _, _, checkpoint = sys.argv[1:5]
    master = sys.argv[5] if len(sys.argv) > 5 else "local[2]"
    spark = barnabas.spark.session(app.application_id, master=master, config=CONFIG)
    print("SESSION", flush=True)
    while True:
        run = start(app, spark, servers=servers, checkpoints=checkpoint, trigger="200 milliseconds")
        print(f"QUERY {run.queries[0].id}", flush=True)
        notice = ""
        while (failure := run.failure()) is None or run.is_active:
            time.sleep(LOOK_SECONDS)
            run.tend()
            if run.notice != notice:
                notice = run.notice
                print(f"FAILED {notice[:300]}", flush=True)
        print(f"FAILED {failure}"[:300], flush=True)


if __name__ == "__main__":
    run_until_killed(app)
