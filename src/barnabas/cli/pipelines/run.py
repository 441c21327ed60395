"""``barnabas run``: run the pipelines and Streams applications of a file on Spark until they are stopped.

Each continues from its checkpoint. Ctrl-C lets the batch that is under way finish; a second one does not wait. SIGTERM
waits a few seconds at most. ``spark/pipelines/runner.py`` runs pipelines, ``streams/host/runner.py`` applications.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import add_connection, attend, pairs, sentence, settings_of
from barnabas.client.settings.client import Settings
from barnabas.model.errors import BarnabasError
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark.pipelines.pipeline import Pipeline
    from barnabas.spark.pipelines.runner import Run
    from barnabas.spark.pipelines.status import PipelineStatus
    from barnabas.streams.app import App

CHECKPOINTS: Final = "barnabas-checkpoints"
LOOK_SECONDS: Final = 0.25
TERMINATION_SECONDS: Final = 3.0  # what SIGTERM leaves the batch under way
STOP_TIMEOUT: Final = {"spark.sql.streaming.stopTimeout": "5s"}  # what Spark then waits for its own threads


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "file",
        type=Path,
        metavar="FILE",
        help="Python file with pipelines and applications, or YAML file of a pipeline",
    )
    add(
        "names",
        nargs="*",
        metavar="NAME",
        help="names of the pipelines and ids of the applications to run (default all)",
    )
    add("--master", help="where Spark runs: local[4], spark://host:7077, yarn, k8s://..., sc://host (default local[*])")
    add(
        "--checkpoints",
        default=CHECKPOINTS,
        metavar="PATH",
        help=f"directory of the checkpoints (default {CHECKPOINTS})",
    )
    add("--once", action="store_true", help="process the records that are there, and exit")
    add("--set", action="append", default=[], dest="config", metavar="KEY=VALUE", help="setting of Spark; repeatable")
    add("--environment", metavar="FILE", help="packed virtual environment for executors on other machines")
    add_connection(parser)


def run(arguments: Namespace) -> int:
    try:
        return _run(arguments)
    except BarnabasError as error:
        raise Failure(sentence(error)) from error
    except ImportError as error:
        raise Failure(f"{error}: run `pip install 'barnabas[spark]'`") from error


def _run(arguments: Namespace) -> int:
    settings = settings_of(Settings, arguments)
    attend(_reach(settings))  # a broker that is not there is better told before Spark has started
    from barnabas.cli.pipelines.spark_start import starting
    from barnabas.spark.sessions import session

    chosen = _chosen(_load(arguments.file), arguments.names)
    config = STOP_TIMEOUT | pairs(arguments.config)
    with starting(arguments.master or "local[*]"):
        spark = session("barnabas run", master=arguments.master, config=config, environment=arguments.environment)
    checkpoints = arguments.checkpoints if "://" in arguments.checkpoints else Path(arguments.checkpoints).absolute()
    try:
        runs = [_start(each, spark, settings, arguments, checkpoints) for each in chosen.values()]
        report = Report(runs, settings, arguments, checkpoints=str(checkpoints))
        try:
            return _watch(runs, report, is_terminal=sys.stdout.isatty())
        finally:
            report.tell(is_last=True)
    finally:
        spark.stop()


def _start(
    each: Pipeline | App, spark: SparkSession, settings: Settings, arguments: Namespace, checkpoints: str | Path
) -> Run:
    from barnabas.spark.pipelines.pipeline import Pipeline
    from barnabas.spark.pipelines.runner import start as start_pipeline
    from barnabas.streams.host.runner import start as start_app

    servers, client = ",".join(settings.bootstrap_servers), pairs(arguments.properties)
    once = arguments.once
    if isinstance(each, Pipeline):
        return start_pipeline(each, spark, servers=servers, checkpoints=checkpoints, once=once, client=client)
    return start_app(each, spark, servers=servers, checkpoints=checkpoints, once=once, client=client)


async def _reach(settings: Settings) -> None:
    from barnabas.client.cluster.cluster import Cluster

    async with Cluster(settings) as cluster:
        await cluster.open()


def _load(path: Path) -> dict[str, Pipeline | App]:
    """The pipelines and applications of a file, by name."""
    from barnabas.spark.pipelines.pipeline_file import load, pipelines_of
    from barnabas.streams.app import App
    from barnabas.streams.host.code import load_module

    if path.suffix != ".py":
        return {each.name: each for each in load(path)}
    if not path.is_file():
        raise Failure(f"there is no file {path}")
    from pyspark import cloudpickle

    module = load_module(path)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # workers do not have it
    found: list[tuple[str, Pipeline | App]] = [(each.name, each) for each in pipelines_of(vars(module).values())]
    apps = {id(each): each for each in vars(module).values() if isinstance(each, App)}
    found += [(each.application_id, each) for each in apps.values()]
    if not found:
        raise Failure(
            f"{path} has no pipeline and no application: put @barnabas.spark.pipeline(...) above a function, or assign "
            f"a barnabas.streams.App to a variable"
        )
    names = [name for name, _ in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Failure(f"{path} has two pipelines or applications with the name {twice[0]}")
    return dict(found)


def _chosen(known: dict[str, Pipeline | App], names: list[str]) -> dict[str, Pipeline | App]:
    for name in names:
        if name not in known:
            raise Failure(f"there is no pipeline or application {name!r} in the file; it has {', '.join(known)}")
    return {name: known[name] for name in names} if names else known


def _watch(runs: list[Run], report: Report, *, is_terminal: bool) -> int:
    from barnabas.cli.pipelines.pipeline_view import LineView, TableView

    asked = _stop_signal()
    noticed: dict[str, str] = {}
    with TableView() if is_terminal else LineView() as view:
        while True:
            view.show([(each, each.state()) for each in runs])
            report.tell()
            for each in runs:
                each.tend()
                if each.notice != noticed.get(each.about.name, ""):
                    noticed[each.about.name] = each.notice
                    print(f"barnabas: {each.notice}", file=sys.stderr)
            if asked or any(each.failure() for each in runs) or all(each.has_ended for each in runs):
                break
            time.sleep(LOOK_SECONDS)
        _stop(runs, grace_seconds=TERMINATION_SECONDS if signal.SIGTERM in asked else None)
        view.show([(each, each.state()) for each in runs])
    failures = [failure for each in runs if (failure := each.failure()) is not None]
    for failure in failures:
        print(f"barnabas: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _stop(runs: list[Run], *, grace_seconds: float | None) -> None:
    from pyspark.errors import PySparkException

    for each in runs:
        try:
            each.stop() if grace_seconds is None else each.stop(grace_seconds=grace_seconds)
        except PySparkException as error:  # a thread of Spark did not end in time; the process ends all the same
            print(f"barnabas: {each.about.name} did not stop in time: {error}", file=sys.stderr)


def _stop_signal() -> list[int]:
    """The signals to stop that have arrived, a list that grows. The second one of a kind ends the process at once."""
    asked: list[int] = []

    def on_signal(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    return asked


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
            batch_ms=state.batch_ms,
            kind=run.about.kind,
            error="" if failure is None else str(failure),
        )
