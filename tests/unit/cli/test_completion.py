"""What Tab offers, from the parsers themselves. How shells ask for it is in ``test_completion_in_shells``."""

from __future__ import annotations

from argparse import Namespace

import pytest

from barnabas.cli.main import COMMANDS, main
from barnabas.cli.terminal.completion import SCRIPTS, candidates

NAMES = {"TOPIC": ["orders", "others", "users"], "GROUP": ["billing"]}


def offered(*words: str) -> list[str]:
    return candidates(list(words), lambda what, _: NAMES.get(what, []))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["top"], ["topic"]),
        (["topic", "de"], ["delete", "describe"]),
        (["topic", "list", "-o", ""], ["json", "table", "wide", "yaml"]),
        (["topic", "list", "--no-h"], ["--no-headers"]),
        (["topic", "describe", "or"], ["orders"]),
        (["topic", "describe", "orders", "o"], ["orders", "others"]),
        (["consume", ""], ["orders", "others", "users"]),
        (["consume", "orders", "-g", "b"], ["billing"]),
        (["group", "describe", ""], ["billing"]),
        (["produce", "-z", "l"], ["lz4"]),
        (["config", "get", "t"], ["topic"]),
        (["nothing", ""], []),
        (["topic", "nothing", ""], []),
        (["completion", "z"], ["zsh"]),
    ],
)
def test_what_may_come_next_is_offered(words: list[str], expected: list[str]) -> None:
    assert offered(*words) == expected


def test_without_words_every_command_is_offered() -> None:
    assert offered() == offered("") == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_of_every_command_are_offered(command: str) -> None:
    verbs = [each for each in offered(command, "") if not each.startswith("-")]
    found = offered(command, "--")
    assert "--help" in found or verbs


def test_the_cluster_that_was_named_is_asked() -> None:
    seen: list[Namespace] = []

    def names(_: str, asked: Namespace) -> list[str]:
        seen.append(asked)
        return []

    candidates(["consume", "-b", "far:1", ""], names)
    assert seen[0].servers == "far:1"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_script_asks_back(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "barnabas completion words --" in capsys.readouterr().out


def test_words_that_look_like_options_are_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "words", "--", "topic", "list", "--inter"]) == 0
    assert capsys.readouterr().out == "--internal\n"


def test_names_of_a_cluster_that_is_not_there_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "words", "--", "consume", "-b", "127.0.0.1:1", ""]) == 0
    assert capsys.readouterr() == ("", "")
