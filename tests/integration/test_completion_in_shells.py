"""Each shell runs its script as it does when somebody presses Tab: bash, zsh and fish, where they are installed."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from barnabas.cli.terminal.completion import HINTS, SCRIPTS

SECONDS_MAX = 120


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a user without start-up files, who has a command ``barnabas``, in a directory with one file."""
    home, commands = tmp_path / "home", tmp_path / "commands"
    for directory in (home, commands):
        directory.mkdir()
    (home / "settings-of-mine.txt").touch()
    command = commands / "barnabas"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m barnabas "$@"\n')
    command.chmod(0o755)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return {**kept, "PATH": f"{commands}:{kept['PATH']}", "HOME": str(home), "TERM": "dumb", "BARNABAS_HOME": str(home)}


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed here")


def _said(command: list[str], environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
        env=environment,
        cwd=environment["HOME"],
    )
    assert done.stderr == ""
    return done.stdout.split()


@needs("bash")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("barnabas topic des", ["describe"]),
        ("barnabas topic de", ["delete", "describe"]),
        ("barnabas topic list -o ", ["json", "table", "wide", "yaml"]),
        ("barnabas produce -b 127.0.0.1:1 -z l", ["lz4"]),
        ("barnabas topic list --no-h", ["--no-headers"]),
        ("barnabas dump set", []),  # then bash offers files itself
    ],
)
def test_bash_completes(environment: dict[str, str], line: str, offered: list[str]) -> None:
    script = f'{HINTS["bash"]}; COMP_LINE="{line}"; COMP_POINT={len(line)}; _barnabas; echo "${{COMPREPLY[@]}}"'
    assert _said(["bash", "--norc", "-c", script], environment) == offered


@needs("bash")
def test_bash_is_given_what_comes_behind_a_colon(environment: dict[str, str]) -> None:
    """It takes a colon for the end of a word, and would write what is before it twice."""
    script = (
        f"{HINTS['bash']}\nbarnabas() {{ echo a:billing; echo a:b:books; }}\n"
        'for COMP_LINE in "barnabas group describe a:" "barnabas group describe a:b:b"; do\n'
        '    COMP_POINT=${#COMP_LINE}; _barnabas; echo "${COMPREPLY[@]}"\ndone'
    )
    assert _said(["bash", "--norc", "-c", script], environment) == ["billing", "b:books", "a:billing", "books"]


@needs("fish")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("barnabas top", ["topic"]),
        ("barnabas topic de", ["delete", "describe"]),
        ("barnabas topic list -o ", ["json", "table", "wide", "yaml"]),
        ("barnabas produce -b 127.0.0.1:1 -z l", ["lz4"]),
        ("barnabas topic list --no-h", ["--no-headers"]),
        ("barnabas dump set", ["settings-of-mine.txt"]),
    ],
)
def test_fish_completes(environment: dict[str, str], line: str, offered: list[str]) -> None:
    assert _said(["fish", "--no-config", "-c", f"{HINTS['fish']}; complete -C '{line}'"], environment) == offered


class Zsh:
    """It completes only for somebody who sits before it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._heard = b""
        self._end, theirs = pty.openpty()
        self._shell = subprocess.Popen(
            ["zsh", "-f", "-i"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            cwd=environment["HOME"],
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, text: str, *, until: str) -> None:
        """``until`` has to be heard after the words themselves are echoed."""
        self._heard = b""
        os.write(self._end, text.encode())
        deadline = time.monotonic() + SECONDS_MAX
        while until.encode() not in self._heard:
            assert time.monotonic() < deadline, self._heard.decode()
            if select.select([self._end], [], [], 1)[0]:
                self._heard += os.read(self._end, 65536)

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._end)


@needs("zsh")
@pytest.mark.parametrize("is_set_up", [True, False], ids=["with compinit", "without"])
def test_zsh_completes(environment: dict[str, str], is_set_up: bool) -> None:
    zsh = Zsh(environment)
    try:
        set_up = "autoload -Uz compinit && compinit -i; " if is_set_up else ""
        zsh.type(f"PS1=; {set_up}{HINTS['zsh']}; echo rea''dy\n", until="ready")
        zsh.type("barnabas topic des\t", until="describe")
        zsh.type("\x15barnabas topic de\t\t", until="delete")
        zsh.type("\x15barnabas topic list --no-h\t", until="--no-headers")
        zsh.type("\x15barnabas produce -b 127.0.0.1:1 -z l\t", until="lz4")
        zsh.type("\x15barnabas dump set\t", until="settings-of-mine.txt")
    finally:
        zsh.close()


@needs("zsh")
def test_zsh_finds_the_script_among_its_functions(environment: dict[str, str]) -> None:
    functions = Path(environment["HOME"]) / "functions"
    functions.mkdir()
    (functions / "_barnabas").write_text(SCRIPTS["zsh"])
    zsh = Zsh(environment)
    try:
        zsh.type(
            "PS1=; fpath=(~/functions $fpath); autoload -Uz compinit && compinit -i; echo rea''dy\n", until="ready"
        )
        zsh.type("barnabas topic des\t", until="describe")
    finally:
        zsh.close()
