"""``barnabas group seek``: where a group goes on reading: start, end, a time, an offset, another group's, a file's.

It begins as a dry run that shows before and after; ``--execute`` commits. Only a group without members can be moved,
because members would go on from where they are.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.cli import moments
from barnabas.cli.failure import Failure
from barnabas.cli.terminal.output import is_table, print_table, print_value
from barnabas.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, resolve
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin

EMPTY: Final = "Empty"


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


class Move(NamedTuple):
    partition: TopicPartition
    before: int | None
    after: int


async def seek(admin: Admin, arguments: Namespace, *, now_ms: int) -> list[Move]:
    """What is to be moved, and moved if that was asked for."""
    committed = {place: entry.offset for place, entry in (await admin.group_offsets(arguments.group)).items()}
    wanted = await _wanted(admin, arguments, committed)
    after = await _targets(admin, arguments, wanted, now_ms=now_ms)
    moves = [Move(place, committed.get(place), offset) for place, offset in sorted(after.items())]
    if not moves:
        raise Failure(f"there is nothing to move: {arguments.group!r} has committed nothing; name topics with --topic")
    if arguments.execute:
        await _check_empty(admin, arguments.group, is_known=bool(committed))
        await admin.alter_group_offsets(arguments.group, {move.partition: move.after for move in moves})
    return moves


async def _wanted(admin: Admin, arguments: Namespace, committed: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    if arguments.to_file is not None:
        return sorted(read_offsets(arguments.to_file))
    if not arguments.topics:
        if arguments.to_group is None:
            return sorted(committed)
        return sorted(await admin.group_offsets(arguments.to_group))
    return await places_of(admin, arguments.topics)


async def places_of(admin: Admin, texts: Iterable[str]) -> list[TopicPartition]:
    """Partitions as people write them: TOPIC for all of its, TOPIC:0,1 for some."""
    found: dict[TopicPartition, None] = {}
    for text in texts:
        name, _, numbers = text.partition(":")
        topic = await admin.cluster.topic(name, timeout_ms=0)
        try:
            chosen = [int(number) for number in numbers.split(",")] if numbers else range(len(topic.partitions))
        except ValueError:
            raise Failure(f"{text!r}: say TOPIC, or TOPIC:0,1 for some of its partitions") from None
        for index in chosen:
            if not 0 <= index < len(topic.partitions):
                raise Failure(f"{name} has partitions 0 to {len(topic.partitions) - 1}, and no {index}")
            found[TopicPartition(name, index)] = None
    return list(found)


async def _targets(
    admin: Admin, arguments: Namespace, wanted: list[TopicPartition], *, now_ms: int
) -> dict[TopicPartition, int]:
    """Offsets that exist: whatever lies outside of a log is moved to its edge."""
    if not wanted:
        return {}
    if arguments.to_group is not None:
        others = await admin.group_offsets(arguments.to_group)
        if not others:
            raise Failure(f"{arguments.to_group!r} has committed nothing")
        return {place: others[place].offset for place in wanted if place in others}
    if arguments.to_file is not None:
        offsets = read_offsets(arguments.to_file)
    else:
        start = moments.parse_window(arguments.to, now_ms=now_ms).start
        offsets = await resolve(admin.cluster, dict.fromkeys(wanted, start), isolation_level="read_uncommitted")
    first = await admin.list_offsets(dict.fromkeys(wanted, EARLIEST_TIMESTAMP))
    last = await admin.list_offsets(dict.fromkeys(wanted, LATEST_TIMESTAMP))
    return {place: min(max(offset, first[place].offset), last[place].offset) for place, offset in offsets.items()}


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


async def _check_empty(admin: Admin, group: str, *, is_known: bool) -> None:
    if is_known:
        state = (await admin.describe_group(group)).state
        if state != EMPTY:
            raise Failure(f"{group!r} is {state}: its members would not notice; stop them first")


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
