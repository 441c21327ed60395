"""The commands in the docs are run, in order, in an empty directory, and print what the docs say that they print.

A block marked ``console`` is a session: lines with ``$`` are typed, those with ``>`` go on with them, the rest is what
comes back. ``…`` stands for anything in a line, or, alone, for any number of lines. The port of the docs is changed to
a free one and back, and so are those of the metrics and of the registry.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "TOUR.md", ROOT / "docs" / "REGISTRY.md", ROOT / "docs" / "CONSOLE.md"]
PORT, HTTP_PORT, REGISTRY_PORT, CONSOLE_PORT = "9092", "9644", "8081", "8080"
SECONDS_MAX = 60
ANYTHING = "…"


class Step(NamedTuple):
    command: str
    expected: list[str]


def steps(text: str) -> Iterator[Step]:
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        command, expected = "", []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield Step(command, expected)
                command, expected = line[2:], []
            elif line.startswith("> ") and not expected:
                command += "\n" + line[2:]
            else:
                expected.append(line)
        if command:
            yield Step(command, expected)


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return str(held.getsockname()[1])


def fits(expected: list[str], said: list[str]) -> bool:
    """Line by line; a line of its own that stands for anything may take any number of them."""
    if not expected:
        return not said
    if expected[0] == ANYTHING:
        return any(fits(expected[1:], said[count:]) for count in range(len(said) + 1))
    if not said:
        return False
    pattern = ".*".join(re.escape(part) for part in expected[0].split(ANYTHING))
    return re.fullmatch(pattern, said[0]) is not None and fits(expected[1:], said[1:])


class Terminal:
    """A shell in an empty directory, in which ``barnabas`` is this one."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._ports = {port: free_port() for port in (PORT, HTTP_PORT, REGISTRY_PORT, CONSOLE_PORT)}
        commands = home / "bin"
        commands.mkdir()
        (commands / "barnabas").write_text(f'#!/bin/sh\nexec {sys.executable} -m barnabas "$@"\n')
        (commands / "barnabas").chmod(0o755)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("BARNABAS_")},
            "PATH": f"{commands}:{os.environ['PATH']}",
            "BARNABAS_BOOTSTRAP_SERVERS": f"127.0.0.1:{self._ports[PORT]}",
            "BARNABAS_HOME": str(home / "profiles"),
            "BARNABAS_CONSOLE_PORT": self._ports[CONSOLE_PORT],
            "BARNABAS_REGISTRY_PORT": self._ports[REGISTRY_PORT],
            "BARNABAS_SCHEMA_REGISTRY": f"http://127.0.0.1:{self._ports[REGISTRY_PORT]}",
        }

    def type(self, command: str) -> list[str]:
        environment = dict(self._environment)
        for port, ours in self._ports.items():
            command = command.replace(port, ours)
        if command.startswith("barnabas up") and "--config" not in command:
            environment["BARNABAS_SET_LISTENERS"] = f"PLAINTEXT://127.0.0.1:{self._ports[PORT]}"
            environment["BARNABAS_SET_BARNABAS_HTTP_PORT"] = self._ports[HTTP_PORT]
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        said = done.stdout
        for port, ours in self._ports.items():
            said = said.replace(ours, port)  # a table is as wide as the port that was free
        return said.splitlines()

    def close(self) -> None:
        if (self._home / "barnabas-data").exists():
            self.type("barnabas down")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def alike(line: str) -> str:
    """Columns may be wider than in the docs, where the port or the number of a process is longer."""
    return re.sub(r" {2,}", "  ", line.strip())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_print_what_the_docs_say(page: Path, terminal: Terminal) -> None:
    session = list(steps(page.read_text()))
    assert session, f"{page.name} shows no session"
    for step in session:
        if step.command.startswith("pip install"):
            continue  # done, or this test would not run
        said = [alike(line) for line in terminal.type(step.command)]
        expected = [alike(line) for line in step.expected]
        if step.command.startswith("barnabas consume"):
            said, expected = sorted(said), sorted(expected)  # partitions are read side by side
        shown = "\n".join(said)
        assert fits(expected, said), f"$ {step.command}\n{shown}\n\nand {page.name} says\n\n" + "\n".join(expected)


def test_every_session_in_the_docs_is_run() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        if "```console" in page.read_text():
            assert page in PAGES, f"{page.name} shows sessions: add it to the pages that are run"


def test_what_is_left_open_matches_and_nothing_else() -> None:
    assert fits(["a…c", "…", "z"], ["abc", "x", "y", "z"])
    assert fits(["…"], [])
    assert not fits(["a"], ["a", "b"])
    assert not fits(["a…"], ["b"])
    assert not fits(["a", "b"], ["a"])
