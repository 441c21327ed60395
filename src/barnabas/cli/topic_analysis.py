"""``barnabas topic analyze``: how much comes in, in which batches, from how many producers; read off the log itself.

What was written in a stretch of time is read batch by batch, at most so many megabytes of it; the figures are of what
was read, and say how much that was. Nothing is decompressed or decoded.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.failure import Failure
from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import NOBODY, duration, is_table, print_facts, print_table, print_value, size
from barnabas.cli.terminal.verbs import admin_of, now_ms

if TYPE_CHECKING:
    from barnabas.cli.batch_reader import ReadBatch

MIB: Final = 1024 * 1024


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="TOPIC")
    parser.add_argument("--since", default="-10m", metavar="WHERE", help="from where on, as consume -o (default -10m)")
    parser.add_argument("--max-mb", type=int, default=256, metavar="N", help="read no more than this (default 256)")


def run(arguments: Namespace) -> None:
    from barnabas.cli import moments
    from barnabas.cli.batch_reader import BatchReader
    from barnabas.client.offsets import resolve
    from barnabas.model.ids import TopicPartition

    if arguments.max_mb < 1:
        raise Failure("--max-mb must be at least 1")
    start = moments.parse_window(arguments.since, now_ms=now_ms()).start

    async def work() -> list[ReadBatch]:
        async with admin_of(arguments) as admin:
            topic = await admin.cluster.topic(arguments.name, timeout_ms=0)
            places = [TopicPartition(arguments.name, index) for index in topic.led_partitions]
            starts = await resolve(admin.cluster, dict.fromkeys(places, start), isolation_level="read_uncommitted")
            found: list[ReadBatch] = []
            total = 0
            async for batch in BatchReader(admin.cluster, starts, until_end=True).read():
                found.append(batch._replace(data=b""))
                total += batch.header.size_bytes
                if total >= arguments.max_mb * MIB:
                    break
            return found

    show(arguments, analyze(attend(work(), is_long=True)))


def analyze(batches: Sequence[ReadBatch]) -> dict[str, Any]:
    """Figures of all batches, and of those of each partition."""
    by_partition: dict[int, list[ReadBatch]] = {}
    for batch in batches:
        by_partition.setdefault(batch.partition.partition, []).append(batch)
    return {
        **_figures(batches),
        "codecs": dict(Counter(batch.header.codec.name.lower() for batch in batches)),
        "producers": len({batch.header.producer_id for batch in batches if batch.header.producer_id >= 0}),
        "transactional_batches": sum(batch.header.is_transactional for batch in batches),
        "partitions": [{"partition": number, **_figures(each)} for number, each in sorted(by_partition.items())],
    }


def _figures(batches: Iterable[ReadBatch]) -> dict[str, Any]:
    headers = [batch.header for batch in batches]
    sizes = sorted(header.size_bytes for header in headers)
    count = sum(header.record_count for header in headers)
    first = min((header.base_timestamp for header in headers), default=0)
    last = max((header.max_timestamp for header in headers), default=0)
    seconds = max(last - first, 1) / 1000
    return {
        "records": count,
        "batches": len(headers),
        "bytes": sum(sizes),
        "span_ms": last - first,
        "records_per_second": round(count / seconds, 1) if len(headers) > 1 else None,
        "bytes_per_second": round(sum(sizes) / seconds) if len(headers) > 1 else None,
        "batch_bytes_p50": sizes[len(sizes) // 2] if sizes else None,
        "batch_bytes_max": sizes[-1] if sizes else None,
        "records_per_batch": round(count / len(headers), 1) if headers else None,
    }


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
