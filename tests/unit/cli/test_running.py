"""What runs from a directory is known by its lock, and a note without one is stale."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.cli.serve.running import LOCK_FILE, NOTE_FILE, Running, find_running, find_supervisor, noted, supervised
from barnabas.ops.failure import Failure
from barnabas.world.real import RealDisk


def running(directory: Path, node_id: int = 1) -> Running:
    directory.mkdir(parents=True, exist_ok=True)
    return Running(str(directory), os.getpid(), "127.0.0.1:1", None, "c", node_id, 0)


def test_a_broker_is_found_while_it_has_its_directory(tmp_path: Path) -> None:
    with noted(running(tmp_path)):
        assert find_running(tmp_path) == []  # nobody holds the lock
        lock = RealDisk().lock(str(tmp_path / LOCK_FILE))
        assert [each.node_id for each in find_running(tmp_path)] == [1]
        lock.release()
    assert not (tmp_path / NOTE_FILE).exists()


def test_the_brokers_of_a_cluster_are_found_below_its_directory(tmp_path: Path) -> None:
    with ExitStack() as stack:
        for number in (2, 1):
            home = tmp_path / f"broker-{number}"
            stack.enter_context(noted(running(home, number)))
            stack.callback(RealDisk().lock(str(home / LOCK_FILE)).release)
        assert [each.node_id for each in find_running(tmp_path)] == [1, 2]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_note_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / NOTE_FILE).write_text(text)
    assert find_running(tmp_path) == []


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="--data-dir"):
        find_running(tmp_path / "nowhere")


def test_one_process_at_a_time_looks_after_a_cluster(tmp_path: Path) -> None:
    assert find_supervisor(tmp_path) is None
    with supervised(tmp_path):
        assert find_supervisor(tmp_path) == os.getpid()
        with pytest.raises(Failure, match="run already"), supervised(tmp_path):
            pass
    assert find_supervisor(tmp_path) is None


def test_brokers_that_happen_to_be_below_a_directory_are_not_its_own(tmp_path: Path) -> None:
    home = tmp_path / "somebody-elses"
    with noted(running(home)), ExitStack() as stack:
        stack.callback(RealDisk().lock(str(home / LOCK_FILE)).release)
        assert find_running(tmp_path) == []
        assert [each.node_id for each in find_running(home)] == [1]


@pytest.mark.parametrize("words", [("purge",), ("down", "--purge")])
def test_a_directory_without_data_is_not_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    (tmp_path / "precious").write_text("x")
    assert main([*words, "--data-dir", str(tmp_path), "--yes"]) == 1
    assert "is no data directory" in capsys.readouterr().err
    assert (tmp_path / "precious").exists()
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert main([*words, "--data-dir", str(tmp_path), "--yes"]) == 0
    assert not tmp_path.exists()
