"""A pass that a whole run of its suite does not have is lost like one that fails: `check` says so, `record` refuses."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.peers import Peer
from conformance.outcome import Leg, Outcome, Verdict
from conformance.verdicts import Row, gone

from conformance import __main__ as command
from conformance import verdicts

PASSED = Row("stays", Verdict.PASS, Verdict.PASS), Row("vanishes", Verdict.PASS, Verdict.PASS)
NEVER_PASSED = Row("share group", Verdict.PASS, Verdict.UNKNOWN)


class Alive(Peer):
    """Nobody talks to it."""

    name = "barnabas"

    def command(self) -> list[str]:
        return []

    def is_alive(self) -> bool:
        return True


@contextmanager
def no_broker(kind: str, leg: Leg) -> Iterator[Peer]:
    peer = Alive()
    try:
        yield peer
    finally:
        peer.remove()


def passing(_: Peer, tests: Sequence[str]) -> Iterator[Outcome]:
    yield from (Outcome(test, Verdict.PASS) for test in tests)


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tests of a suite that is made up; its list says that two pass."""
    names = ["stays", "vanishes"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(verdicts, "DIRECTORY", tmp_path)
    monkeypatch.setattr(command, "started", no_broker)
    monkeypatch.setitem(command.SUITES, "made-up", lambda: [Leg({}, tuple(names), passing)])
    verdicts.write("made-up", [*PASSED, NEVER_PASSED])
    return names


def called(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["conformance", *words, "--suite", "made-up"])
    return command.main()


def test_what_a_whole_run_does_not_have_is_lost_until_it_is_accepted(
    suite: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "run") == 0
    assert called(monkeypatch, "check") == 0
    suite.remove("vanishes")
    assert called(monkeypatch, "run") == 1
    assert called(monkeypatch, "check") == 1
    assert "LOST  vanishes: gone" in capsys.readouterr().err
    assert called(monkeypatch, "record") == 2
    assert verdicts.read("made-up")["vanishes"].barnabas is Verdict.PASS
    assert called(monkeypatch, "record", "--accept-losses") == 0
    row = verdicts.read("made-up")["vanishes"]
    assert (row.kafka, row.barnabas) == (Verdict.PASS, Verdict.GONE)
    assert "whole suite" in row.reason


def test_a_run_of_some_tests_says_nothing_of_the_others(suite: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(monkeypatch, "run", "--tests", "stays") == 0
    assert called(monkeypatch, "check") == 0
    assert [outcome.test for outcome in verdicts.load_run("made-up", "barnabas")] == ["stays"]


def test_a_test_that_comes_back_is_a_pass_again(suite: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    suite.remove("vanishes")
    assert called(monkeypatch, "run") == 1
    suite.append("vanishes")
    assert called(monkeypatch, "run") == 0
    assert called(monkeypatch, "check") == 0


def test_only_what_passed_on_this_broker_can_be_gone() -> None:
    rows = {row.test: row for row in (*PASSED, NEVER_PASSED)}
    assert [one.test for one in gone(rows, "barnabas", [Outcome("stays", Verdict.FAIL)])] == ["vanishes"]
    assert [one.test for one in gone(rows, "kafka", [])] == ["stays", "vanishes", "share group"]
