"""A query continues from a checkpoint that an earlier version of the package wrote (``tests/data/spark-checkpoint``).

The query counts values. Its checkpoint holds one batch, which read the values 0, 1 and 2, and the state of the counts.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from barnabas import NewTopic

CHECKPOINT = Path(__file__).parents[1] / "data" / "spark-checkpoint"
SOURCE, TARGET = "checkpoint-source", "checkpoint-target"


def test_a_checkpoint_of_an_earlier_version_is_continued(stage: Any) -> None:
    with stage.admin() as admin:
        for topic in (SOURCE, TARGET):
            admin.create_topic(NewTopic(topic, 1))
    stage.send(SOURCE, ["0", "1", "2", "0", "3"])
    shutil.copytree(CHECKPOINT, stage.directory / "checkpoint")
    frame = stage.stream(subscribe=SOURCE, startingOffsets="earliest").groupBy("value").count()
    counts = frame.selectExpr("value as key", "concat(cast(value as string), '=', cast(count as string)) as value")
    writer = counts.writeStream.format("barnabas").options(**stage.options({"topic": TARGET})).outputMode("complete")
    query = stage.finish(writer)
    assert [(each["batchId"], each["numInputRows"]) for each in stage.progress(query)] == [(1, 2)]
    assert stage.values(TARGET) == ["0=2", "1=1", "2=1", "3=1"]
