"""When a failed application is started again, and when it has failed for good."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from barnabas.spark.pipelines.runner import About
from barnabas.streams.host import runner
from barnabas.streams.host.runner import BACK_OFF_SECONDS, AppRun

PASSING = "[STREAM_FAILED] Python worker failed to connect back"
LASTING = "Traceback:\nbarnabas.streams.errors.ProcessingFailed: KSTREAM-MAP-1: processing offset 3 of a-0 failed"


class Query:
    """A query that has failed, or that runs if ``error`` is None."""

    def __init__(self, error: str | None) -> None:
        self.isActive = error is None
        self.lastProgress = None
        self._error = error

    def exception(self) -> str | None:
        return self._error


def run_of(*errors: str | None, monkeypatch: pytest.MonkeyPatch) -> tuple[AppRun, list[Any], list[float]]:
    """A run whose queries end with these errors, one after the other, and a clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(runner.time, "monotonic", lambda: now[0])
    left: list[Any] = [Query(error) for error in errors]
    return AppRun(About("app", "app", [], ""), lambda: left.pop(0), once=False, is_looped=False), left, now


def test_a_query_that_lost_a_worker_starts_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    run, left, now = run_of(PASSING, None, monkeypatch=monkeypatch)
    run.tend()
    assert run.failure() is None
    assert not run.has_ended
    assert "starts again in 1 s: [STREAM_FAILED] Python worker failed" in run.notice
    run.tend()
    assert left, "the pause is not over"
    now[0] += BACK_OFF_SECONDS[0]
    run.tend()
    assert not left
    assert run.is_active


def test_an_error_of_the_application_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _, _ = run_of(LASTING, monkeypatch=monkeypatch)
    run.tend()
    failure = run.failure()
    assert failure is not None
    assert "processing offset 3 of a-0 failed" in str(failure)
    assert run.has_ended


def test_after_many_failures_without_a_batch_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    run, left, now = run_of(*[PASSING] * (len(BACK_OFF_SECONDS) + 1), monkeypatch=monkeypatch)
    for pause in BACK_OFF_SECONDS:
        run.tend()
        assert run.failure() is None
        now[0] += pause
        run.tend()
    run.tend()
    assert not left
    assert run.failure() is not None
