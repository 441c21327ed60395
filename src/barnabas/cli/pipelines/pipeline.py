"""``barnabas pipeline``: list and describe pipelines and applications, as ``barnabas run`` has published them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING

from barnabas.cli.terminal.connection import add_connection, attend, settings_of
from barnabas.cli.terminal.output import add_output, is_table, print_facts, print_table, print_value
from barnabas.client.settings.client import Settings
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.spark.pipelines.status import PipelineStatus


def configure(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    entry = verbs.add_parser(
        "list", help="list pipelines and Streams applications", description="List pipelines and Streams applications."
    )
    entry.set_defaults(run=_list)
    add_output(entry)
    add_connection(entry)
    entry = verbs.add_parser("describe", help="show how a pipeline is going", description="Show a pipeline.")
    entry.add_argument("names", nargs="+", metavar="NAME")
    entry.set_defaults(run=_describe)
    add_output(entry)
    add_connection(entry)


def run(arguments: Namespace) -> None:
    arguments.run(arguments)


def _found(arguments: Namespace) -> list[PipelineStatus]:
    from barnabas.spark.pipelines.status import published

    return attend(published(settings_of(Settings, arguments)))


def _list(arguments: Namespace) -> None:
    found = _found(arguments)
    if not is_table(arguments):
        print_value(arguments, [asdict(each) for each in found])
        return
    if not found:
        print("no pipelines; `barnabas run FILE` starts one", file=sys.stderr)
    columns = ("NAME", "KIND", "STATE", "BATCH", "ROWS", "ROWS/S", "LAG", "UPDATED")
    rows = [
        (
            each.name,
            each.kind,
            each.state,
            each.batch_id if each.batch_id >= 0 else "-",
            each.rows_total,
            round(each.rows_per_second),
            "-" if each.lag is None else each.lag,
            _ago(each),
        )
        for each in found
    ]
    print_table(columns, rows, right=("BATCH", "ROWS", "ROWS/S", "LAG"), arguments=arguments)


def _describe(arguments: Namespace) -> None:
    known = {each.name: each for each in _found(arguments)}
    missing = [name for name in arguments.names if name not in known]
    chosen = [known[name] for name in arguments.names if name in known]
    if not is_table(arguments):
        print_value(arguments, [asdict(each) for each in chosen])
    else:
        for index, each in enumerate(chosen):
            if index:
                print()
            print_facts(_facts(each))
    if missing:
        raise Failure(f"there is no pipeline {', '.join(missing)}; `barnabas pipeline list` shows all")


def _facts(each: PipelineStatus) -> dict[str, object]:
    facts: dict[str, object] = {
        each.kind: each.name,
        "state": f"{each.state}, updated {_ago(each)}",
        "reads": ", ".join(each.reads),
        "writes": each.writes,
        "batch": each.batch_id if each.batch_id >= 0 else "none yet",
        "rows": f"{each.rows_total} in this run, {each.rows_per_second:.0f} a second in the last batch",
        "lag": "not known" if each.lag is None else each.lag,
        "state rows": each.state_rows,
        "group": f"{each.group} (`barnabas group describe {each.group}`)",
        "checkpoint": each.checkpoint,
        "file": each.file,
        "runs on": f"{each.host}, process {each.process}, master {each.master}",
    }
    if each.error:
        facts["error"] = each.error
    return facts


def _ago(each: PipelineStatus) -> str:
    from barnabas.spark.pipelines.status import now_ms

    seconds = max(0, now_ms() - each.updated_ms) // 1000
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
