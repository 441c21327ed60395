"""With ``spark.barnabas.fastStart=false`` Spark starts all processes itself, and a query gives the same result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

PROGRAM = """
import json, os, sys
import barnabas.spark
from barnabas.spark.processes.fast_start import LOCAL_CHECKPOINTS

servers, source, target, checkpoint = sys.argv[1:]
config = {"spark.barnabas.fastStart": "false", "spark.driver.memory": "512m"}
spark = barnabas.spark.session("plain", master="local[2]", config=config)
told = {"kafka.bootstrap.servers": servers}
frame = spark.readStream.format("barnabas").options(**told, subscribe=source, startingOffsets="earliest").load()
writer = frame.select("key", "value").writeStream.format("barnabas").options(**told, topic=target)
writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
(manager,) = LOCAL_CHECKPOINTS
java = spark.sparkContext._jvm.java.lang
print(json.dumps({
    "daemon": spark.conf.get("spark.python.daemon.module", None),
    "manager": spark.conf.get(manager, None),
    "options": spark.conf.get("spark.driver.extraJavaOptions"),
    "variables": sorted(java.System.getenv().keySet()),
    "python": spark.sparkContext.pythonExec,
}))
spark.stop()
"""


def test_a_query_runs_on_plain_spark(stage: Any) -> None:
    source, target = stage.topic("source"), stage.topic("target")
    stage.send(source, ["a", "b"])
    command = [sys.executable, "-c", PROGRAM, stage.servers, source, target, str(stage.directory / "checkpoint")]
    names = ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "BARNABAS_FORK_SERVER", "MALLOC_ARENA_MAX")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert stage.values(target) == ["a", "b"]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["daemon"] is None
    assert found["manager"] is None
    assert "jsa" not in found["options"], "the class archive"
    assert found["python"] == sys.executable
    assert not {"BARNABAS_FORK_SERVER", "MALLOC_ARENA_MAX"} & set(found["variables"])
