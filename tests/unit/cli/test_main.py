"""The command as a whole: its help, its version, what it says of mistakes, and what it need not import."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path

import pytest

from barnabas import __version__
from barnabas.cli.main import COMMANDS, main


@pytest.fixture
def silent_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name}" in out for name in COMMANDS)


def test_no_command_shows_the_help_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage" in capsys.readouterr().out


def test_a_misspelt_command_suggests_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cunsume"]) == 2
    assert "did you mean 'consume'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["version"], ["--version"], ["-V"]])
def test_the_version_is_printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out.startswith(f"barnabas {__version__}")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"barnabas {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list"],
        ["topic", "create", "t"],
        ["topic", "delete", "t", "--yes"],
        ["topic", "describe", "t"],
        ["consume", "t"],
        ["produce", "t"],
    ],
)
def test_where_no_broker_is_the_one_line_says_what_to_do(
    words: list[str], silent_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "-b", f"127.0.0.1:{silent_port}"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"127.0.0.1:{silent_port}" in error
    assert "barnabas up" in error


def test_a_misspelt_client_setting_suggests_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "-X", "request.timout.ms=5"]) == 1
    assert "request.timeout.ms" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "delete", "t"],
        ["topic", "trim", "t", "-o", "-1"],
        ["group", "delete", "g"],
        ["group", "offset-delete", "g", "t"],
        ["acl", "delete", "--topic", "t"],
        ["user", "delete", "alice"],
        ["config", "delete", "topic", "t", "retention.ms"],
        ["profile", "delete", "prod"],
        ["txn", "abort", "id"],
        ["txn", "abort", "--partition", "t-0", "--producer", "7"],
        ["broker", "forget", "3"],
        ["leader", "elect", "--unclean", "t-0"],
        ["reassign", "cancel"],
    ],
    ids=" ".join,
)
def test_what_destroys_needs_a_yes(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_HOME", str(tmp_path))
    main(["profile", "create", "prod"])
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))  # nobody types this
    assert main(words) == 1
    assert capsys.readouterr().err == "barnabas: nobody is here to confirm this: say --yes\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(words) == 1
    assert capsys.readouterr().err == "barnabas: nothing was done\n"


def test_every_verb_that_deletes_can_be_told_not_to_ask() -> None:
    for name, command in COMMANDS.items():
        for word, verb in getattr(import_module(f"barnabas.cli.{command.module}"), "VERBS", {}).items():
            parser = ArgumentParser()
            verb.configure(parser)
            if "delete" in word:
                assert "--yes" in parser.format_help(), f"{name} {word}"


def test_the_help_needs_nothing_but_argparse() -> None:
    code = (
        "import sys; from barnabas.cli.main import main; main(['--help']);"
        "heavy = {'asyncio', 'typer', 'rich', 'pydantic', 'pyarrow', 'uvloop', 'msgspec'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_listing_topics_needs_no_more_than_it_uses(silent_port: int) -> None:
    code = (
        f"import sys; from barnabas.cli.main import main; main(['topic', 'list', '-b', '127.0.0.1:{silent_port}']);"
        "heavy = {'typer', 'rich', 'pydantic', 'pyarrow', 'uvloop', 'msgspec', 'barnabas.client.producer'};"
        "heavy &= set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
