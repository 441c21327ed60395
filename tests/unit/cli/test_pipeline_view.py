"""What ``barnabas run`` shows, and when it stops."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from barnabas.cli.pipelines.pipeline_view import BAR_CELLS, Behind, LineView, TableView, amount, bar
from barnabas.cli.pipelines.run import _watch
from barnabas.spark.pipelines.runner import Run, State

NAMED: Any = SimpleNamespace(name="copied")


class Query:
    """As Spark's: a batch is under way for some looks, and what stopped it is remembered."""

    lastProgress = None  # noqa: N815

    def __init__(self, busy_looks: int = 0) -> None:
        self.isActive = True
        self.busy_looks = busy_looks
        self.was_busy_at_stop = False

    @property
    def status(self) -> dict[str, bool]:
        self.busy_looks -= 1
        return {"isTriggerActive": self.busy_looks >= 0}

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        self.isActive = False
        self.was_busy_at_stop = self.busy_looks > 0


class Report:
    def tell(self, *, is_last: bool = False) -> None:
        os.kill(os.getpid(), self.number)

    def __init__(self, number: int) -> None:
        self.number = number


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(query: Any, rows_total: int = 0) -> Run:
    made = Run(NAMED, [query])
    made.rows_total = rows_total
    return made


def test_a_bar_is_full_when_nothing_is_behind() -> None:
    behind = Behind()
    assert [behind.share(lag) for lag in (0, 100, 25, 0)] == [1.0, 0.0, 0.75, 1.0]
    assert behind.share(None) is None
    assert bar(0.75) == "█" * 15 + "░" * 5
    assert bar(None) == " " * BAR_CELLS


def test_amounts_are_short() -> None:
    assert [amount(value) for value in (0, 999, 1500, 250_000, 3e6, 2e9)] == [
        "0",
        "999",
        "1.5k",
        "250k",
        "3.0M",
        "2.0G",
    ]


def test_a_terminal_shows_a_table_with_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with TableView() as view:
        view.show([(run(Query()), State(lag=100))])
        view.show(
            [(run(Query(), 1500), State(batch_id=7, rows=9, rows_per_second=12, lag=25, state_rows=3, batch_ms=41))]
        )
    shown = " ".join(capsys.readouterr().out.split())
    assert "PIPELINE BATCH ROWS ROWS/S LAG STATE TOOK CAUGHT UP" in shown
    assert f"copied 7 1.5k 12 25 3 41 ms {bar(0.75)} 75%" in shown


def test_elsewhere_a_batch_is_a_line_and_comes_once(capsys: pytest.CaptureFixture[str]) -> None:
    with LineView() as view:
        for state in (State(), State(batch_id=0, rows=5), State(batch_id=0, rows=5), State(batch_id=1, rows=0)):
            view.show([(run(Query()), state)])
    assert capsys.readouterr().out.splitlines() == ["copied  batch 0  5 rows  0 rows/s  lag -  state 0 rows  0 ms"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_batch_under_way_finish(number: int) -> None:
    query: Any = Query(busy_looks=3)
    report: Any = Report(number)
    assert _watch([run(query)], report, is_terminal=False) == 0
    assert not query.isActive
    assert not query.was_busy_at_stop
    assert signal.getsignal(number) is signal.SIG_DFL, "a second one does not wait"


def test_a_batch_that_takes_too_long_is_not_waited_for() -> None:
    query: Any = Query(busy_looks=10**6)
    run(query).stop(grace_seconds=0.0)
    assert not query.isActive
