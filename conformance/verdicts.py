"""The lists of what passes: one CSV file per suite in the repository, a row per test, a column per broker.

The rule is that a pass stays a pass: `losses` names every test that passed according to the list and did not in a run,
`gone` those that a whole run did not have, and `merged` refuses to write one down unless it is told to. Reasons are
written by hand where someone looked, and kept; a failure nobody has looked at yet carries its own first line. Called by
the command line and the page of the results.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tools.cache import cache_directory, locked

from conformance.outcome import Outcome, Verdict

DIRECTORY = Path(__file__).parent / "verdicts"
_COLUMNS = ("test", "kafka", "barnabas", "reason")
_RUN_COLUMNS = ("test", "verdict", "reason", "seconds")


class PassLost(Exception):
    """A run would turn a pass of the list into something else."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one test; the reason speaks of whichever broker does not pass."""

    test: str
    kafka: Verdict = Verdict.UNKNOWN
    barnabas: Verdict = Verdict.UNKNOWN
    reason: str = ""

    def of(self, peer: str) -> Verdict:
        return self.kafka if peer == "kafka" else self.barnabas


def read(suite: str) -> dict[str, Row]:
    """The list of a suite; empty if there is none yet."""
    path = DIRECTORY / f"{suite}.csv"
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [
            Row(row["test"], Verdict(row["kafka"]), Verdict(row["barnabas"]), row["reason"])
            for row in csv.DictReader(file)
        ]
    return {row.test: row for row in rows}


def write(suite: str, rows: Iterable[Row]) -> Path:
    path = DIRECTORY / f"{suite}.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(
            (row.test, row.kafka, row.barnabas, row.reason) for row in sorted(rows, key=lambda row: row.test)
        )
    return path


def losses(rows: Mapping[str, Row], peer: str, outcomes: Iterable[Outcome]) -> list[Outcome]:
    """What passed according to the list and did not pass now."""
    return [
        outcome
        for outcome in outcomes
        if outcome.verdict is not Verdict.PASS and outcome.test in rows and rows[outcome.test].of(peer) is Verdict.PASS
    ]


def gone(rows: Mapping[str, Row], peer: str, outcomes: Iterable[Outcome]) -> list[Outcome]:
    """What passed according to the list and is not among the outcomes of a run of everything: kept, it is a loss."""
    ran = {outcome.test for outcome in outcomes}
    return [
        Outcome(row.test, Verdict.GONE, "a run of the whole suite did not have it")
        for row in rows.values()
        if row.test not in ran and row.of(peer) is Verdict.PASS
    ]


def merged(
    rows: Mapping[str, Row], peer: str, outcomes: Iterable[Outcome], *, accept_losses: bool = False
) -> dict[str, Row]:
    """The list with a run put into it."""
    outcomes = list(outcomes)
    if not accept_losses and (lost := losses(rows, peer, outcomes)):
        raise PassLost("passed before, and not now: " + ", ".join(outcome.test for outcome in lost))
    result = dict(rows)
    for outcome in outcomes:
        row = result.get(outcome.test, Row(outcome.test))
        row = replace(row, **{peer: outcome.verdict})
        if not _failing(row) and Verdict.UNKNOWN not in (row.kafka, row.barnabas):
            row = replace(row, reason="")
        elif outcome.verdict is not Verdict.PASS and not row.reason:
            row = replace(row, reason=outcome.reason)
        result[outcome.test] = row
    return result


def _failing(row: Row) -> set[Verdict]:
    """The kinds in which this row is not a pass; a time-out is a failure."""
    return {
        Verdict.FAIL if verdict is Verdict.TIMEOUT else verdict
        for verdict in (row.kafka, row.barnabas)
        if verdict not in (Verdict.PASS, Verdict.UNKNOWN)
    }


def save_run(suite: str, peer: str, outcomes: Iterable[Outcome]) -> Path:
    """Keeps outcomes in the cache: what `check` and `record` look at. Tests that were not run keep their last one.

    Give it only what is new: two runs at once share the file, and old news would undo the other's newer.
    """
    path = _run_path(suite, peer)
    with locked("conformance"), path.open("a+", newline="") as file:
        known = {outcome.test: outcome for outcome in load_run(suite, peer)}
        known.update({outcome.test: outcome for outcome in outcomes})
        file.truncate(0)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_RUN_COLUMNS)
        writer.writerows(
            (outcome.test, outcome.verdict, outcome.reason, f"{outcome.seconds:.1f}")
            for _, outcome in sorted(known.items())
        )
    return path


def load_run(suite: str, peer: str) -> list[Outcome]:
    path = _run_path(suite, peer)
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Outcome(row["test"], Verdict(row["verdict"]), row["reason"], float(row["seconds"]))
            for row in csv.DictReader(file)
        ]


def _run_path(suite: str, peer: str) -> Path:
    return cache_directory("conformance") / f"{suite}-{peer}.csv"
