"""Spark's own Kafka connector at work, in a process of its own since its jars must be there when Java starts.

Run as a program by ``test_spark_connector.py``: servers, source, target, directory. Prints what it saw as one line of
JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import barnabas.spark

ROWS = 1000
CONFIG = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.jars": os.environ.get("SPARK_KAFKA_JARS", ""),
}


class Connector:
    def __init__(self, servers: str, source: str, target: str, directory: str) -> None:
        self.spark = barnabas.spark.session("connector", master="local[2]", config=CONFIG)
        self.servers = {"kafka.bootstrap.servers": servers}
        self.source = source
        self.target = target
        self.directory = directory

    def write(self, start: int, count: int) -> None:
        headers = "array(named_struct('key', 'n', 'value', cast(cast(id as string) as binary))) as headers"
        rows = self.spark.range(start, start + count, 1, 2)
        rows = rows.selectExpr("cast(id % 10 as string) as key", "cast(id as string) as value", headers)
        rows.write.format("kafka").options(**self.servers, topic=self.source, includeHeaders="true").save()

    def read(self, **options: str) -> Any:
        return self.spark.read.format("kafka").options(**self.servers, **options).load()

    def batch(self) -> dict[str, Any]:
        whole = self.read(subscribe=self.source, includeHeaders="true")
        agree = whole.where("cast(headers[0].value as string) = cast(value as string) and headers[0].key = 'n'")
        middle = {self.source: {"0": 5, "1": 5, "2": -2}}
        edge = {self.source: {"0": 10, "1": 10, "2": -1}}
        part = self.read(subscribe=self.source, startingOffsets=json.dumps(middle), endingOffsets=json.dumps(edge))
        third = whole.where("partition = 2").count()
        return {
            "rows": whole.count(),
            "sum": whole.selectExpr("sum(cast(cast(value as string) as long))").first()[0],
            "headers": agree.count(),
            "part": part.count() - third,
            "by pattern": self.read(subscribePattern=f"{self.source[:-2]}.*").where(f"topic = '{self.source}'").count(),
            "of all times": self.read(subscribe=self.source, startingTimestamp="1").count(),
            "cut": self.read(subscribe=self.source, minPartitions="6").rdd.getNumPartitions(),
        }

    def stream(self) -> dict[str, int]:
        """Two runs from one checkpoint, with more rows between them."""
        counts = []
        for start in (ROWS, 2 * ROWS):
            reader = self.spark.readStream.format("kafka").options(**self.servers, subscribe=self.source)
            frame = reader.options(startingOffsets="earliest", maxOffsetsPerTrigger="400").load()
            writer = frame.select("key", "value").writeStream.format("kafka").options(**self.servers, topic=self.target)
            writer = writer.option("checkpointLocation", f"{self.directory}/checkpoint").trigger(availableNow=True)
            query = writer.start()
            query.awaitTermination()
            counts.append(sum(each.numInputRows for each in query.recentProgress))
            self.write(start, ROWS)
        return {"first": counts[0], "second": counts[1]}

    def committed(self) -> dict[str, int]:
        """What a transactional writer has left behind, as this connector sees it."""
        return {
            level: self.read(subscribe=f"{self.source}-transactions", **{"kafka.isolation.level": level}).count()
            for level in ("read_committed", "read_uncommitted")
        }


def main() -> None:
    connector = Connector(*sys.argv[1:5])
    connector.write(0, ROWS)
    told = {"batch": connector.batch(), "transactions": connector.committed(), "stream": connector.stream()}
    print(json.dumps(told), flush=True)
    connector.spark.stop()


if __name__ == "__main__":
    main()
