"""The commands of a file: which words they are, and what becomes of the rest when one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.main import FAILED, main
from barnabas.cli.terminal.batch import commands
from barnabas.ops.failure import Failure


def test_lines_are_read_as_a_shell_reads_them() -> None:
    lines = ["topic create 'a b' -p 3  # three\n", "\n", "# nothing\n", "barnabas version\n"]
    assert list(commands(lines)) == [(1, ["topic", "create", "a b", "-p", "3"]), (4, ["version"])]


@pytest.mark.parametrize(("line", "reason"), [("topic 'a", "line 1: No closing"), ("batch x", "does not run another")])
def test_a_line_that_is_none_is_said(line: str, reason: str) -> None:
    with pytest.raises(Failure, match=reason):
        list(commands([line]))


def test_the_first_failure_ends_it_unless_it_is_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "commands"
    path.write_text("version\nnonsense\ntopic --nonsense\nversion\n")
    assert main(["batch", str(path)]) == FAILED
    said = capsys.readouterr()
    assert said.out.count("$ barnabas version") == 1
    assert "line 2 failed; what comes after it was not run" in said.err
    assert main(["batch", str(path), "--keep-going", "--quiet"]) == FAILED
    said = capsys.readouterr()
    assert "$" not in said.out
    assert len(said.out.splitlines()) == 2
    assert "2 commands failed" in said.err


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "/nowhere"]) == FAILED
    assert capsys.readouterr().err == "barnabas: /nowhere: No such file or directory\n"
