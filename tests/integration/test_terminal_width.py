"""What is printed for people fits their terminal, however wide, and loses nothing; pipes get lines as they are."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator

import pytest
from talk import Talk, batch
from waiting import until

from barnabas.cli.main import main
from barnabas.testing import Broker
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest

WIDTHS = (60, 80, 200)
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
TOPIC = "orders-of-customers-who-have-names-that-nobody-can-remember-and-that-no-terminal-was-made-for"
GROUP = f"readers-of-{TOPIC}"
VALUE = b"v" * 300
COMMANDS = {
    "topic list": ["topic", "list"],
    "topic describe": ["topic", "describe", TOPIC],
    "topic describe all": ["topic", "describe", TOPIC, "-a"],
    "group list": ["group", "list"],
    "group describe": ["group", "describe", GROUP],
    "cluster info": ["cluster", "info"],
}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with names that are longer than the narrowest terminal."""
    with Broker() as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create(TOPIC, partitions=3, retention_ms="123456789012")
        assert talk.produce(TOPIC, batch(VALUE)).error_code == 0
        commit = OffsetCommitRequest
        parts = [commit.OffsetCommitRequestPartition(partition_index=index, committed_offset=0) for index in range(3)]
        topics = [commit.OffsetCommitRequestTopic(name=TOPIC, partitions=parts)]
        request = commit(group_id=GROUP, generation_id_or_member_epoch=-1, topics=topics)

        def is_committed() -> bool:
            talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
            return not talk.ask(request, 8).topics[0].partitions[0].error_code

        until(is_committed)
        yield broker.bootstrap_servers


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


Show = Callable[..., list[str]]


@pytest.fixture
def show(servers: str, monkeypatch: pytest.MonkeyPatch) -> Show:
    """The lines that a command prints on a terminal of that width, or into a pipe."""

    def call(words: list[str], *, width: int | None) -> list[str]:
        out = io.StringIO() if width is None else Screen()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", out)
            patched.setenv("COLUMNS", str(width or 60))
            assert main([*words, "-b", servers]) == 0
        return COLOURS.sub("", out.getvalue()).splitlines()

    return call


def letters(lines: list[str]) -> list[str]:
    """What is there apart from the way it is laid out: a cell that is folded has its letters all the same."""
    return sorted("".join("".join(lines).split()))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(show: Show, command: str, width: int) -> None:
    lines = show(COMMANDS[command], width=width)
    assert max(map(len, lines)) <= width
    assert letters(lines) == letters(show(COMMANDS[command], width=None))


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_piped_is_not_folded_however_narrow_the_terminal(show: Show, command: str) -> None:
    lines = show(COMMANDS[command], width=None)
    name = GROUP if command == "group list" else TOPIC
    assert command == "cluster info" or any(name in line.split() for line in lines)
    assert [line.rstrip() for line in lines] == lines


def test_asked_for_width_a_table_on_a_terminal_is_as_wide_as_need_be(show: Show) -> None:
    assert show(["topic", "list", "-o", "wide"], width=60) == show(["topic", "list"], width=None)


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_and_short_words_stay_in_one_piece_while_names_can_give_way(show: Show, width: int) -> None:
    lines = show(["group", "describe", GROUP], width=width)
    (headers,) = [line for line in lines if line.startswith("TOPIC")]
    assert headers.split()[:5] == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]


def seen(words: list[str], *, width: int) -> str:
    """As a program of its own prints it on a terminal that tells its width itself."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    read: list[bytes] = []

    def listen() -> None:
        try:
            while piece := os.read(ours, 65536):
                read.append(piece)
        except OSError:
            pass  # so Linux says that nobody has the other end any more

    listener = threading.Thread(target=listen)
    try:
        program = subprocess.Popen(
            [sys.executable, "-m", "barnabas", *words],
            stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"},
        )  # fmt: skip
        os.close(theirs)
        listener.start()
        assert program.wait(120) == 0, b"".join(read)
    finally:
        listener.join(120)
        os.close(ours)
    return b"".join(read).decode()


@pytest.mark.parametrize("width", [60, 100])
def test_the_width_is_that_of_the_terminal_itself(servers: str, width: int) -> None:
    lines = COLOURS.sub("", seen(["topic", "list", "-b", servers], width=width)).split("\r\n")
    assert width - 5 <= max(map(len, lines)) <= width


def test_records_are_never_folded(servers: str) -> None:
    line = seen(["consume", TOPIC, "-o", "start", "-n", "1", "-b", servers], width=60).strip()
    assert line == VALUE.decode()
