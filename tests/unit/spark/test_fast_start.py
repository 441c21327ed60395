"""Fast start is used as a whole, with Spark versions that it was tried with, unless it is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from barnabas.spark.errors import InvalidOption
from barnabas.spark.processes import fast_start
from barnabas.spark.processes.fast_start import DAEMON, LOCAL_CHECKPOINTS, SWITCH, FastStart, is_on
from barnabas.spark.processes.java import Java


@pytest.mark.parametrize(
    ("version", "is_tried"), [("4.3.0", True), ("4.3.7", True), ("4.4.0", False), ("5.0.0", False), ("4.3", False)]
)
def test_fast_start_is_off_with_a_spark_version_that_was_not_tried(version: str, is_tried: bool) -> None:
    assert is_on({}, version) == is_tried


def test_one_setting_switches_it_off() -> None:
    assert is_on({SWITCH: "TRUE"}, "4.3.0")
    assert not is_on({SWITCH: "False"}, "4.3.0")
    with pytest.raises(InvalidOption, match="pass true or false"):
        is_on({SWITCH: "no"}, "4.3.0")


@pytest.mark.parametrize(("master", "is_local"), [("local[2]", True), ("spark://host:7077", False), ("yarn", False)])
def test_only_a_session_on_one_machine_changes_how_checkpoints_are_written_and_forks(
    master: str, is_local: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for variable in fast_start.PYTHONS:
        monkeypatch.delenv(variable, raising=False)
    started: list[Path] = []
    monkeypatch.setattr(fast_start, "fork_server", started.append)
    made = FastStart(master, Java(tmp_path, "17.0.1"), "4.3.0", has_own_python=False)
    assert made.settings == DAEMON | (LOCAL_CHECKPOINTS if is_local else {})
    assert bool(started) == is_local
    assert (fast_start.ARENAS in made.environment) == is_local


def test_a_python_that_the_user_has_chosen_is_not_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python-of-mine")
    monkeypatch.setattr(fast_start, "fork_server", lambda cache: pytest.fail("the fork server was started"))
    made = FastStart("local[2]", Java(tmp_path, "17.0.1"), "4.3.0", has_own_python=False)
    assert "PYSPARK_PYTHON" not in made.environment
