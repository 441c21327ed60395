"""A client of a Spark Connect server, for ``test_connect.py``: a batch, a stream that copies, and ``each_batch``.

Run as a program: server, brokers, source, target, counts, checkpoint directory. Prints how many rows each run has read.
"""

from __future__ import annotations

import sys
from typing import Any

import barnabas.spark
from barnabas.spark import each_batch


def main() -> None:
    server, brokers, source, target, counts, checkpoints = sys.argv[1:7]
    spark = barnabas.spark.session("connecting", master=server)
    told = {"kafka.bootstrap.servers": brokers}
    print(spark.read.format("barnabas").options(**told, subscribe=source).load().count(), flush=True)

    def stream() -> Any:
        reader = spark.readStream.format("barnabas").options(**told, subscribe=source)
        return reader.option("startingOffsets", "earliest").load()

    for number in range(2):
        writer = stream().select("key", "value").writeStream.format("barnabas").options(**told, topic=target)
        query = writer.option("checkpointLocation", f"{checkpoints}/copy").trigger(availableNow=True).start()
        query.awaitTermination()
        print(sum(each.numInputRows for each in query.recentProgress), flush=True)
        if number == 0:
            more = spark.range(100, 200).selectExpr("cast(id as string) as key", "cast(id as string) as value")
            more.write.format("barnabas").mode("append").options(**told, topic=source).save()
    summed = stream().groupBy().count().selectExpr("cast(count as string) as value")
    writer = summed.writeStream.outputMode("update").foreachBatch(
        each_batch(told | {"topic": counts}, name="connecting")
    )
    query = writer.option("checkpointLocation", f"{checkpoints}/counts").trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
