"""A bar on a terminal, lines elsewhere, and nothing for what takes no time."""

from __future__ import annotations

import io

from hand_clock import HandClock

from barnabas.cli.serve.recovery_bar import RecoveryBar
from barnabas.storage.progress import RecoveryProgress

MIB = 1024 * 1024


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def play(stream: io.StringIO, *, step_ms: int, logs: int = 10) -> str:
    clock = HandClock()
    bar = RecoveryBar(stream, clock)
    progress = RecoveryProgress("/data", logs, logs * 100 * MIB)
    for _ in range(logs):
        for _ in range(10):
            clock.now_ms += step_ms
            progress.bytes_done += 10 * MIB
            bar.show(progress)
        progress.logs_done += 1
        bar.show(progress)
    return stream.getvalue()


def test_what_takes_no_time_is_not_mentioned() -> None:
    assert play(io.StringIO(), step_ms=1) == ""
    assert play(Terminal(), step_ms=1) == ""


def test_lines_where_there_is_no_terminal() -> None:
    lines = play(io.StringIO(), step_ms=200).splitlines()
    assert 3 <= len(lines) <= 6
    assert lines[0] == "barnabas: recovering /data: 0 of 10 logs, 30 of 1000 MiB after 1 s"
    assert lines[-1] == "barnabas: recovering /data: 10 of 10 logs, 1000 of 1000 MiB after 20 s"


def test_a_bar_on_a_terminal() -> None:
    text = play(Terminal(), step_ms=50)
    assert text.count("\r") > 20
    assert text.endswith(" 100%  10 of 10 logs, 1000 of 1000 MiB\n")
    assert "█" in text
    assert "░" in text
