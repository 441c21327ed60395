"""How ``barnabas run`` shows pipelines while they run: a table that moves on a terminal, a line a batch elsewhere.

rich is imported only for the table. What the numbers are is ``spark/pipelines/runner.py``'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from barnabas.spark.pipelines.runner import Run, State

BAR_CELLS: Final = 20


class Behind:
    """How far a pipeline has caught up since it was furthest behind."""

    def __init__(self) -> None:
        self._lag_max = 0

    def share(self, lag: int | None) -> float | None:
        if lag is None:
            return None
        self._lag_max = max(self._lag_max, lag)
        return 1.0 if not self._lag_max else 1 - lag / self._lag_max


def bar(share: float | None) -> str:
    if share is None:
        return " " * BAR_CELLS
    filled = round(share * BAR_CELLS)
    return "█" * filled + "░" * (BAR_CELLS - filled)


def amount(value: float) -> str:
    for unit in ("", "k", "M"):
        if value < 1000:
            return f"{value:.0f}{unit}" if not unit or value >= 100 else f"{value:.1f}{unit}"
        value /= 1000
    return f"{value:.1f}G"


class LineView:
    """For a pipe or a file: one line for each batch that read something."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, runs: Iterable[tuple[Run, State]]) -> None:
        for run, state in runs:
            name = run.about.name
            if state.batch_id > self._seen.get(name, -1) and state.rows:
                self._seen[name] = state.batch_id
                lag = "-" if state.lag is None else state.lag
                print(
                    f"{name}  batch {state.batch_id}  {state.rows} rows  {amount(state.rows_per_second)} rows/s  "
                    f"lag {lag}  state {state.state_rows} rows  {state.batch_ms} ms",
                    flush=True,
                )


class TableView:
    """For a terminal."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live: Any = Live(refresh_per_second=4, transient=False)
        self._behind: dict[str, Behind] = {}

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, runs: Iterable[tuple[Run, State]]) -> None:
        from rich.table import Table

        columns = ("PIPELINE", "BATCH", "ROWS", "ROWS/S", "LAG", "STATE", "TOOK", "CAUGHT UP")
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, justify="left" if column in ("PIPELINE", "CAUGHT UP") else "right")
        for run, state in runs:
            share = self._behind.setdefault(run.about.name, Behind()).share(state.lag)
            table.add_row(
                run.about.name,
                "-" if state.batch_id < 0 else str(state.batch_id),
                amount(run.rows_total),
                amount(state.rows_per_second),
                "-" if state.lag is None else amount(state.lag),
                amount(state.state_rows),
                f"{state.batch_ms} ms",
                f"{bar(share)} {'' if share is None else f'{share:.0%}'}",
            )
        self._live.update(table)
