"""``barnabas topic analyze``: how much comes in, in which batches, from how many producers.

``ops/topics/analysis.py`` reads and computes the figures.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import NOBODY, is_table, print_facts, print_table, print_value
from barnabas.cli.terminal.verbs import admin_of, now_ms
from barnabas.ops.failure import Failure
from barnabas.ops.units import duration, size

if TYPE_CHECKING:
    from barnabas.ops.records.batch_reader import ReadBatch

MIB: Final = 1024 * 1024


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="TOPIC")
    parser.add_argument("--since", default="-10m", metavar="WHERE", help="from where on, as consume -o (default -10m)")
    parser.add_argument("--max-mb", type=int, default=256, metavar="N", help="read no more than this (default 256)")


def run(arguments: Namespace) -> None:
    from barnabas.ops.records import moments
    from barnabas.ops.topics.analysis import analyze, read_batches

    if arguments.max_mb < 1:
        raise Failure("--max-mb must be at least 1")
    start = moments.parse_window(arguments.since, now_ms=now_ms()).start

    async def work() -> list[ReadBatch]:
        async with admin_of(arguments) as admin:
            return await read_batches(admin.cluster, arguments.name, start, bytes_max=arguments.max_mb * MIB)

    show(arguments, analyze(attend(work(), is_long=True)))


def show(arguments: Namespace, figures: dict[str, Any]) -> None:
    if not is_table(arguments):
        print_value(arguments, figures)
        return
    if not figures["batches"]:
        print(f"{arguments.name}: nothing was written since {arguments.since}; --since start looks at everything")
        return
    print_facts(
        {
            "topic": arguments.name,
            "read": f"{figures['records']:,} records in {figures['batches']:,} batches, {size(figures['bytes'])}",
            "written in": duration(figures["span_ms"]),
            "rate": _rate(figures),
            "codecs": ", ".join(f"{name} {count}" for name, count in sorted(figures["codecs"].items())),
            "producers": f"{figures['producers']} with an id, {figures['transactional_batches']} transactional batches",
        }
    )
    print()
    columns = ("PARTITION", "RECORDS", "BATCHES", "BYTES", "RECORDS/S", "BYTES/S", "A BATCH", "P50", "MAX")
    rows = [
        (
            row["partition"],
            row["records"],
            row["batches"],
            size(row["bytes"]),
            NOBODY if row["records_per_second"] is None else row["records_per_second"],
            NOBODY if row["bytes_per_second"] is None else size(row["bytes_per_second"]),
            row["records_per_batch"],
            size(row["batch_bytes_p50"]),
            size(row["batch_bytes_max"]),
        )
        for row in figures["partitions"]
    ]
    print_table(columns, rows, right=columns, arguments=arguments)


def _rate(figures: dict[str, Any]) -> str:
    if figures["bytes_per_second"] is None:
        return "one batch"
    return f"{figures['records_per_second']:,.0f}/s, {size(figures['bytes_per_second'])}/s"
