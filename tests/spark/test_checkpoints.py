"""How Spark's notes of a query reach a local disk: without a process for each, and never over what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError


def manager(spark: Any, checkpoint: Path) -> Any:
    jvm = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(checkpoint.as_uri())
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    checkpointing = jvm.org.apache.spark.sql.execution.streaming.checkpointing
    return checkpointing.CheckpointFileManager.create(path, conf)


def test_notes_are_written_the_cheap_way_and_once(spark: Any, tmp_path: Path) -> None:
    files = manager(spark, tmp_path)
    assert files.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"
    note = spark._jvm.org.apache.hadoop.fs.Path((tmp_path / "0").as_uri())
    first, second = files.createAtomic(note, False), files.createAtomic(note, False)
    first.write(bytearray(b"first"))
    first.close()
    second.write(bytearray(b"second"))
    with pytest.raises(Py4JJavaError, match="FileAlreadyExists"):
        second.close()
    assert (tmp_path / "0").read_bytes() == b"first", "another driver with the same checkpoint was here before"
