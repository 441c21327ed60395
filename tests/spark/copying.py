"""A driver for the tests that kill: copies a topic with Spark, and starts the query again whenever it fails.

Run as a program: servers, source, target, checkpoint directory. It prints a line for everything that happens to it.
"""

from __future__ import annotations

import sys
import time

import barnabas.spark
from barnabas.spark.pipelines.runner import reason_of

LOOK_SECONDS = 0.2
CONFIG = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main() -> None:
    servers, source, target, checkpoint = sys.argv[1:5]
    master = sys.argv[5] if len(sys.argv) > 5 else "local[2]"
    spark = barnabas.spark.session("copying", master=master, config=CONFIG)
    told = {"kafka.bootstrap.servers": servers}
    print("SESSION", flush=True)
    while True:
        frame = spark.readStream.format("barnabas").options(**told).option("subscribe", source)
        frame = frame.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "400").load()
        writer = frame.writeStream.format("barnabas").options(**told).option("topic", target)
        query = writer.option("checkpointLocation", checkpoint).trigger(processingTime="200 milliseconds").start()
        print(f"QUERY {query.id}", flush=True)
        while query.isActive:
            time.sleep(LOOK_SECONDS)
        print(f"FAILED {reason_of(str(query.exception()))[:300]}", flush=True)


if __name__ == "__main__":
    main()
