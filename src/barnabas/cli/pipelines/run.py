"""``barnabas run``: run the pipelines of a file on Spark until they are told to stop.

Each goes on where its checkpoint says. SIGTERM and Ctrl-C let the batch that is under way finish; a second one does
not wait. What pipelines are is ``spark/pipelines/pipeline.py``'s, how they run ``spark/pipelines/runner.py``'s.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import add_connection, attend, pairs, sentence, settings_of
from barnabas.client.settings.client import Settings
from barnabas.model.errors import BarnabasError
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.spark.pipelines.pipeline import Pipeline
    from barnabas.spark.pipelines.runner import Run
    from barnabas.spark.pipelines.status import PipelineStatus

CHECKPOINTS: Final = "barnabas-checkpoints"
LOOK_SECONDS: Final = 0.25


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a Python file with pipelines in it, or a YAML file of one")
    add("names", nargs="*", metavar="NAME", help="only these pipelines of the file")
    add("--master", help="where Spark runs: local[4], spark://host:7077, yarn, k8s://..., sc://host (default local[*])")
    add("--checkpoints", default=CHECKPOINTS, metavar="PATH", help=f"where progress is kept (default {CHECKPOINTS})")
    add("--once", action="store_true", help="take what there is, and end")
    add("--set", action="append", default=[], dest="config", metavar="KEY=VALUE", help="a setting of Spark; repeatable")
    add("--environment", metavar="FILE", help="a packed virtual environment for executors elsewhere")
    add_connection(parser)


def run(arguments: Namespace) -> int:
    try:
        return _run(arguments)
    except BarnabasError as error:
        raise Failure(sentence(error)) from error
    except ImportError as error:
        raise Failure(f"{error}: `pip install 'barnabas[spark]'` brings all that pipelines need") from error


def _run(arguments: Namespace) -> int:
    settings = settings_of(Settings, arguments)
    attend(_reach(settings))  # a broker that is not there is better told before Spark has started
    from barnabas.spark.pipelines.pipeline_file import load
    from barnabas.spark.sessions import session

    pipelines = _chosen(load(arguments.file), arguments.names)
    spark = session(
        "barnabas run", master=arguments.master, config=pairs(arguments.config), environment=arguments.environment
    )
    from barnabas.spark.pipelines.runner import start

    told = pairs(arguments.properties)
    checkpoints = arguments.checkpoints if "://" in arguments.checkpoints else Path(arguments.checkpoints).absolute()
    runs = [
        start(
            each,
            spark,
            servers=",".join(settings.bootstrap_servers),
            checkpoints=checkpoints,
            once=arguments.once,
            client=told,
        )
        for each in pipelines
    ]
    report = Report(runs, settings, arguments, checkpoints=str(checkpoints))
    try:
        return _watch(runs, report, is_terminal=sys.stdout.isatty())
    finally:
        report.tell(is_last=True)
        spark.stop()


async def _reach(settings: Settings) -> None:
    from barnabas.client.cluster.cluster import Cluster

    async with Cluster(settings) as cluster:
        await cluster.open()


def _chosen(pipelines: list[Pipeline], names: list[str]) -> list[Pipeline]:
    known = {each.name: each for each in pipelines}
    for name in names:
        if name not in known:
            raise Failure(f"there is no pipeline {name!r} in the file; it has {', '.join(known)}")
    return [known[name] for name in names] if names else pipelines


def _watch(runs: list[Run], report: Report, *, is_terminal: bool) -> int:
    from barnabas.cli.pipelines.pipeline_view import LineView, TableView

    stop = _stop_signal()
    with TableView() if is_terminal else LineView() as view:
        while True:
            view.show([(each, each.state()) for each in runs])
            report.tell()
            if stop() or any(each.failure() for each in runs) or all(each.has_ended for each in runs):
                break
            time.sleep(LOOK_SECONDS)
        for each in runs:
            each.stop()
        view.show([(each, each.state()) for each in runs])
    failures = [failure for each in runs if (failure := each.failure()) is not None]
    for failure in failures:
        print(f"barnabas: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _stop_signal() -> Callable[[], bool]:
    """Whether somebody has asked to stop; who asks twice gets what a signal does by itself."""
    asked: list[int] = []

    def on_signal(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    return lambda: bool(asked)


class Report:
    """Tells the cluster how the pipelines are going, every few seconds and at the end."""

    def __init__(self, runs: list[Run], settings: Settings, arguments: Namespace, *, checkpoints: str) -> None:
        from barnabas.spark.pipelines.status import now_ms

        self._runs = runs
        self._settings = settings
        self._arguments = arguments
        self._checkpoints = checkpoints
        self._started_ms = now_ms()
        self._told_at = 0.0

    def tell(self, *, is_last: bool = False) -> None:
        from barnabas.spark.pipelines.status import PUBLISH_SECONDS, publish

        if not is_last and time.monotonic() - self._told_at < PUBLISH_SECONDS:
            return
        self._told_at = time.monotonic()
        try:
            attend(publish(self._settings, [self._entry(each) for each in self._runs]))
        except Failure as failure:  # the pipelines go on, and so do we
            print(f"barnabas: the cluster was not told how it is going: {failure}", file=sys.stderr)

    def _entry(self, run: Run) -> PipelineStatus:
        from barnabas.spark.pipelines.status import PipelineStatus, now_ms

        state, failure = run.state(), run.failure()
        return PipelineStatus(
            name=run.about.name,
            state="failed" if failure else "running" if run.is_active else "stopped",
            file=str(self._arguments.file.absolute()),
            master=self._arguments.master or "local[*]",
            host=socket.gethostname(),
            process=os.getpid(),
            checkpoint=f"{self._checkpoints}/{run.about.name}",
            group=run.about.group,
            reads=run.about.reads,
            writes=run.about.writes,
            started_ms=self._started_ms,
            updated_ms=now_ms(),
            batch_id=state.batch_id,
            rows_total=run.rows_total,
            rows_per_second=state.rows_per_second,
            lag=state.lag,
            state_rows=state.state_rows,
            error="" if failure is None else str(failure),
        )
