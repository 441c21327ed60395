"""``barnabas group seek``: move the committed offsets of a group to the start, the end, a time, an offset, another
group's.

It is a dry run that prints the offsets before and after; ``--execute`` commits them. See ``ops/groups/seek.py``.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from barnabas.cli.terminal.output import is_table, print_table, print_value
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure
from barnabas.ops.groups.seek import Move, Target, seek
from barnabas.ops.records import moments

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--to",
        metavar="WHERE",
        help="start, end, an offset, +N after the start, end-N before the end, @time (2026-01-31T12:00), -10m ago",
    )
    target.add_argument("--to-group", metavar="OTHER", help="where another group is")
    target.add_argument("--to-file", metavar="FILE", help="as the lines of a file say: topic partition offset")
    parser.add_argument(
        "-t",
        "--topic",
        dest="topics",
        action="append",
        default=[],
        metavar="TOPIC[:0,1,...]",
        help="only this one, or these partitions of it; repeatable (default: all that the group has committed)",
    )
    parser.add_argument("--execute", action="store_true", help="do it; without this it is a dry run")


async def seek_as_asked(admin: Admin, arguments: Namespace, *, now_ms: int) -> list[Move]:
    target = Target(group=arguments.to_group)
    if arguments.to_file is not None:
        target = Target(offsets=read_offsets(arguments.to_file))
    elif arguments.to is not None:
        target = Target(position=moments.parse_window(arguments.to, now_ms=now_ms).start)
    return await seek(admin, arguments.group, target, arguments.topics, is_executed=arguments.execute)


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """Lines of topic, partition and offset, with spaces or, as Kafka exports them, commas between them."""
    found: dict[TopicPartition, int] = {}
    try:
        with open(path) as file:
            for number, line in enumerate(file, start=1):
                words = line.replace(",", " ").split()
                if not words or words[0].startswith("#"):
                    continue
                try:
                    topic, index, offset = words
                    found[TopicPartition(topic, int(index))] = int(offset)
                except ValueError:
                    raise Failure(f"{path}, line {number}: say topic, partition and offset") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    return found


def show(moves: list[Move], arguments: Namespace) -> None:
    if not is_table(arguments):
        values = [
            {"topic": each.partition.topic, "partition": each.partition.partition, **_edges(each)} for each in moves
        ]
        print_value(arguments, values)
        return
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            "-" if each.before is None else each.before,
            each.after,
            "-" if each.before is None else f"{each.after - each.before:+d}",
        )
        for each in moves
    ]
    columns = ("TOPIC", "PARTITION", "BEFORE", "AFTER", "CHANGE")
    print_table(columns, rows, right=("PARTITION", "BEFORE", "AFTER", "CHANGE"), arguments=arguments)
    if not arguments.execute:
        print("\nThis was a dry run: nothing has changed. --execute does it.")


def _edges(move: Move) -> dict[str, int | None]:
    return {"before": move.before, "after": move.after}
