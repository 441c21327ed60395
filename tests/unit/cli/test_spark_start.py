"""The lines that Java and Spark print while they start are left out; everything else is shown."""

from __future__ import annotations

import os
from pathlib import Path

from barnabas.cli.pipelines.spark_start import copy_without_noise

LINES = b"""WARNING: Using incubator modules: jdk.incubator.vector
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
12:00:00 ERROR Executor: something is wrong

Starting Streaming TransformWithStateInPandas Python worker.

Streaming TransformWithStateInPandas Python worker finish init stage of Python runner.

printed by a user
"""


def test_noise_and_the_empty_lines_after_it_are_left_out(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, LINES)
    os.close(writing)
    shown = tmp_path / "shown"
    copy_without_noise(reading, os.open(shown, os.O_WRONLY | os.O_CREAT))
    assert shown.read_bytes() == b"12:00:00 ERROR Executor: something is wrong\n\nprinted by a user\n"
