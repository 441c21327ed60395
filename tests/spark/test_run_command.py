"""``barnabas run`` and ``barnabas pipeline``, as a user types them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PIPELINE = """
from barnabas.spark import Topic, pipeline

@pipeline(reads={{"orders": Topic(name="{source}", schema="id long")}}, writes=Topic(name="{target}"))
def copied(orders):
    return orders.select("id")
"""


def barnabas(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "barnabas", *arguments], capture_output=True, text=True, timeout=300)


def test_a_mistake_is_told_in_one_line_before_spark_starts(stage: Any) -> None:
    nobody = barnabas("run", "x.py", "-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=1000")
    assert nobody.returncode == 1
    assert "start a broker with `barnabas up`" in nobody.stderr
    missing = barnabas("run", "nowhere.py", "-b", stage.servers)
    assert missing.stderr == "barnabas: there is no file nowhere.py\n"


@pytest.mark.slow
def test_a_pipeline_runs_once_and_is_listed(stage: Any) -> None:
    source, target = stage.topic("orders"), stage.topic("copy")
    stage.send(source, ['{"id": 7}', '{"id": 8}'])
    path = Path(stage.directory) / "pipelines.py"
    path.write_text(PIPELINE.format(source=source, target=target))
    arguments = ("-b", stage.servers, "--checkpoints", str(stage.directory), "--master", "local[2]", "--once")
    ran = barnabas("run", str(path), *arguments, "--set", "spark.driver.memory=512m")
    assert ran.returncode == 0, ran.stderr
    assert "copied  batch 0  2 rows" in ran.stdout
    assert stage.values(target) == ['{"id":7}', '{"id":8}']
    listed = barnabas("pipeline", "list", "-b", stage.servers)
    assert "copied" in listed.stdout
    assert "stopped" in listed.stdout
    described = barnabas("pipeline", "describe", "copied", "-b", stage.servers)
    assert f"topic {source}" in described.stdout
    assert barnabas("pipeline", "describe", "nothing", "-b", stage.servers).returncode == 1


FAILING = """
from barnabas.streams import App

app = App("failing")
app.stream("{source}", value=str).map_values(lambda text: int(text)).to("{target}")
"""


@pytest.mark.slow
def test_an_application_that_fails_says_why_in_one_line(stage: Any) -> None:
    source, target = stage.topic("texts"), stage.topic("numbers")
    stage.send(source, ["7", "seven"])
    path = Path(stage.directory) / "app.py"
    path.write_text(FAILING.format(source=source, target=target))
    arguments = ("-b", stage.servers, "--checkpoints", str(stage.directory), "--master", "local[2]", "--once")
    ran = barnabas("run", str(path), *arguments, "--set", "spark.driver.memory=512m")
    assert ran.returncode == 1
    first, reason = ran.stderr.splitlines()
    assert first == "starting Spark (local[2]) ..."
    assert reason.startswith("barnabas: failing stopped: KSTREAM-MAPVALUES-0000000001: processing offset 1 of")
    assert "ValueError: invalid literal for int() with base 10: 'seven'" in reason
    assert stage.values(target) == [], "nothing of the batch is committed"


def test_a_file_without_pipelines_and_applications_is_refused_before_spark_starts(stage: Any, tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    ran = barnabas("run", str(path), "-b", stage.servers)
    assert ran.returncode == 1
    assert "has no pipeline and no application" in ran.stderr
