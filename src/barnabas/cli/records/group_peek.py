"""``barnabas group peek``: the records that a group will read next, without reading them in its name."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.verbs import admin_of
from barnabas.ops.failure import Failure
from barnabas.ops.records import format as record_format
from barnabas.ops.records.format import Line

if TYPE_CHECKING:
    from barnabas.model.ids import TopicPartition


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument("-n", "--num", type=int, default=1, metavar="N", help="so many of each partition (default 1)")
    parser.add_argument(
        "-t", "--topic", dest="topics", action="append", default=[], metavar="TOPIC", help="only this one; repeatable"
    )
    parser.add_argument("-f", "--format", default="json", metavar="FORMAT", help="as in consume (default json)")


def run(arguments: Namespace) -> None:
    import sys

    show = record_format.compile_output(arguments.format)
    for line in attend(_peek(arguments)):
        sys.stdout.buffer.write(show(line))
    sys.stdout.buffer.flush()


async def _peek(arguments: Namespace) -> list[Line]:
    from barnabas.cli.records.consume_batches import lines_of
    from barnabas.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
    from barnabas.ops.records.batch_reader import BatchReader

    async with admin_of(arguments) as admin:
        committed = {place: entry.offset for place, entry in (await admin.group_offsets(arguments.group)).items()}
        wanted = [place for place in sorted(committed) if not arguments.topics or place.topic in arguments.topics]
        if not wanted:
            raise Failure(f"{arguments.group!r} has committed nothing there; `barnabas group list` shows the groups")
        first = await admin.list_offsets(dict.fromkeys(wanted, EARLIEST_TIMESTAMP))
        last = await admin.list_offsets(dict.fromkeys(wanted, LATEST_TIMESTAMP))
        starts = {place: max(committed[place], first[place].offset) for place in wanted}
        starts = {place: offset for place, offset in starts.items() if offset < last[place].offset}
        found: dict[TopicPartition, list[Line]] = {place: [] for place in starts}
        async for batch in BatchReader(admin.cluster, starts, until_end=True).read():
            lines = found[batch.partition]
            lines += lines_of(batch, start=starts[batch.partition], end=None)
            if all(len(each) >= arguments.num for each in found.values()):
                break
        return [line for place in sorted(found) for line in found[place][: arguments.num]]
