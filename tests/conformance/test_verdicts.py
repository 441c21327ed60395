"""The lists only grow: a pass that is lost is seen, and is not written down by accident."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.outcome import Outcome, Verdict
from conformance.suites.clients import CLIENTS, FEATURES
from conformance.verdicts import PassLost, Row, losses, merged

from conformance import docs, verdicts

ROWS = {
    "kept": Row("kept", Verdict.PASS, Verdict.PASS),
    "broken": Row("broken", Verdict.PASS, Verdict.FAIL, "somebody looked"),
}


def test_a_pass_that_fails_is_a_loss() -> None:
    failed = Outcome("kept", Verdict.FAIL, "forced")
    assert losses(ROWS, "barnabas", [failed]) == [failed]
    with pytest.raises(PassLost, match="kept"):
        merged(ROWS, "barnabas", [failed])


@pytest.mark.parametrize("verdict", [Verdict.TIMEOUT, Verdict.SKIP])
def test_a_pass_that_hangs_or_is_skipped_is_a_loss(verdict: Verdict) -> None:
    assert losses(ROWS, "barnabas", [Outcome("kept", verdict)])


def test_a_test_that_never_passed_or_is_new_is_no_loss() -> None:
    assert losses(ROWS, "barnabas", [Outcome("broken", Verdict.FAIL), Outcome("new", Verdict.FAIL)]) == []


def test_a_loss_on_one_broker_says_nothing_of_the_other() -> None:
    rows = {"one": Row("one", Verdict.PASS, Verdict.UNKNOWN)}
    assert losses(rows, "barnabas", [Outcome("one", Verdict.FAIL)]) == []
    assert losses(rows, "kafka", [Outcome("one", Verdict.FAIL)])


def test_a_reason_that_somebody_wrote_stays_until_the_test_passes() -> None:
    rows = merged(ROWS, "barnabas", [Outcome("broken", Verdict.TIMEOUT, "no result")])
    assert rows["broken"] == Row("broken", Verdict.PASS, Verdict.TIMEOUT, "somebody looked")
    assert merged(rows, "barnabas", [Outcome("broken", Verdict.PASS)])["broken"].reason == ""


def test_a_loss_is_written_down_only_when_told_to() -> None:
    rows = merged(ROWS, "barnabas", [Outcome("kept", Verdict.FAIL, "given up")], accept_losses=True)
    assert rows["kept"] == Row("kept", Verdict.PASS, Verdict.FAIL, "given up")


def test_a_list_reads_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "DIRECTORY", tmp_path)
    rows = {**ROWS, "odd": Row("odd", Verdict.SKIP, Verdict.UNKNOWN, 'says "no", twice')}
    verdicts.write("suite", rows.values())
    assert verdicts.read("suite") == rows


def test_a_run_does_not_undo_what_a_later_one_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    verdicts.save_run("suite", "kafka", [Outcome("one", Verdict.FAIL)])
    verdicts.save_run("suite", "kafka", [Outcome("one", Verdict.PASS)])
    verdicts.save_run("suite", "kafka", [Outcome("two", Verdict.FAIL, "still in the first run")])
    found = {outcome.test: outcome.verdict for outcome in verdicts.load_run("suite", "kafka")}
    assert found == {"one": Verdict.PASS, "two": Verdict.FAIL}


@pytest.mark.parametrize("path", sorted(verdicts.DIRECTORY.glob("*.csv")), ids=lambda path: path.stem)
def test_what_does_not_pass_says_why(path: Path) -> None:
    for row in verdicts.read(path.stem).values():
        if row.kafka != Verdict.PASS or row.barnabas not in (Verdict.PASS, Verdict.UNKNOWN):
            assert row.reason, f"{path.stem}: {row.test} has no reason"


def test_the_list_of_the_clients_has_a_row_for_each_cell_and_a_reason_for_each_that_is_missing() -> None:
    cells = {f"{name}: {feature}" for name, client in CLIENTS.items() for feature in client.features}
    assert verdicts.read("clients").keys() == cells
    for client in CLIENTS.values():
        assert client.lacks.keys() <= set(FEATURES)
        assert all(client.lacks.values())


def test_the_page_says_what_the_lists_say() -> None:
    assert docs.PAGE.read_text() == docs.page(), "run `python -m conformance docs`"


def test_a_pass_keeps_the_reason_why_the_other_broker_is_not_known() -> None:
    rows = {"one": Row("one", Verdict.UNKNOWN, Verdict.FAIL, "not run yet on the other")}
    row = verdicts.merged(rows, "barnabas", [Outcome("one", Verdict.PASS)])["one"]
    assert (row.barnabas, row.reason) == (Verdict.PASS, "not run yet on the other")
    assert verdicts.merged({"one": row}, "kafka", [Outcome("one", Verdict.PASS)])["one"].reason == ""
