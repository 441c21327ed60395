"""What a session tells Java, and when it leaves that to the user."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from barnabas.spark import sessions
from barnabas.spark.processes.java import Java


@pytest.mark.parametrize(
    ("is_local", "memory", "given", "is_small"),
    [
        (True, sessions.DRIVER_MEMORY, "-Dmine=1", True),
        (True, "8g", "", False),
        (True, sessions.DRIVER_MEMORY, "-XX:+UseG1GC", False),
        (False, sessions.DRIVER_MEMORY, "", False),
    ],
)
def test_java_is_kept_small_where_nobody_said_otherwise(
    is_local: bool, memory: str, given: str, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "find_java", lambda: Java(Path("/java"), "17.0.1"))
    monkeypatch.setenv("JAVA_HOME", "/java")
    settings = {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": given}
    told = sessions._with_java(settings, is_local=is_local, fast_start=False)["spark.driver.extraJavaOptions"].split()
    assert set(sessions.SMALL_JAVA).issubset(told) == is_small
    assert set(given.split()).issubset(told)


@pytest.mark.parametrize(("master", "is_cheap"), [("local[2]", True), ("spark://host:7077", False), ("yarn", False)])
def test_checkpoints_are_written_the_cheap_way_on_one_machine(
    master: str, is_cheap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in sessions.PYTHONS:
        monkeypatch.setenv(variable, "python")
    settings = sessions._settings(master, None)
    assert (settings.items() >= sessions.LOCAL_CHECKPOINTS.items()) == is_cheap
