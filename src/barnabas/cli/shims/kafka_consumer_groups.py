"""``kafka-consumer-groups.sh``: list, describe, delete and move groups, as Kafka's ConsumerGroupCommand does.

Where to move them is in ``kafka_reset_offsets.py``.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.shims import kafka_reset_offsets
from barnabas.cli.shims.shim import admin_of, carry_out, exactly_one, parser_of, raise_first
from barnabas.cli.terminal.connection import attend
from barnabas.model.errors import ApiError
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.groups import GroupDescription

ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
NOBODY: Final = "-"
WIDTH_MIN: Final = 15


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("kafka-consumer-groups.sh", "List, describe, delete and reset consumer groups.")
    _configure(parser)
    return carry_out(parser, lambda found: attend(_run(found)), arguments)


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    for action in ACTIONS:
        add(f"--{action}", action="store_true")
    add("--group", action="append", default=[], metavar="GROUP")
    add("--all-groups", action="store_true")
    add("--state", nargs="?", const="", metavar="STATE,...", help="with --list, those in these states; else show it")
    add("--type", nargs="?", const="", metavar="TYPE,...", help="with --list, those of these types; else show it")
    for flag in ("offsets", "members", "verbose"):
        add(f"--{flag}", action="store_true")
    kafka_reset_offsets.configure(parser)


async def _run(arguments: Namespace) -> None:
    action = exactly_one(arguments, *ACTIONS)
    work = {
        "list": _list,
        "describe": _describe,
        "delete": _delete,
        "reset-offsets": _reset,
        "delete-offsets": _delete_offsets,
    }[action]
    async with admin_of(arguments) as admin:
        await work(admin, arguments)


async def _groups(admin: Admin, arguments: Namespace) -> list[str]:
    if arguments.all_groups:
        return [group.group_id for group in await admin.list_groups()]
    if not arguments.group:
        raise Failure("One of --group or --all-groups must be specified")
    return list(arguments.group)


async def _list(admin: Admin, arguments: Namespace) -> None:
    states = [part for part in (arguments.state or "").split(",") if part]
    types = [part for part in (arguments.type or "").split(",") if part]
    groups = await admin.list_groups(states=states, types=types)
    columns = [("GROUP", 25, [group.group_id for group in groups])]
    if arguments.type is not None:
        columns.append(("TYPE", 20, [group.type.capitalize() for group in groups]))
    if arguments.state is not None:
        columns.append(("STATE", 20, [group.state for group in groups]))
    if len(columns) == 1:
        for group in groups:
            print(group.group_id)
        return
    for cells in zip(*([title, *values] for title, _, values in columns), strict=True):
        print(" ".join(f"{cell:<{width}}" for cell, (_, width, _) in zip(cells, columns, strict=True)))


async def _describe(admin: Admin, arguments: Namespace) -> None:
    for name in await _groups(admin, arguments):
        try:
            group = await admin.describe_group(name)
        except ApiError as error:
            raise Failure(f"Error: Consumer group '{name}' does not exist: {error.message}") from error
        if not group.members:
            print(f"\nConsumer group '{name}' has no active members.", file=sys.stderr)
        if arguments.members:
            _print_members(group, is_verbose=arguments.verbose)
        elif arguments.state is not None:
            await _print_state(admin, group)
        else:
            await _print_offsets(admin, group)


async def _print_offsets(admin: Admin, group: GroupDescription) -> None:
    from barnabas.client.group.lag import lags

    committed = {place: entry.offset for place, entry in (await admin.group_offsets(group.group_id)).items()}
    behind = await lags(admin.cluster, committed)
    owners = {place: member for member in group.members for place in member.partitions}
    rows: list[tuple[Any, ...]] = []
    for place in sorted({*behind, *owners}):
        lag, owner = behind.get(place), owners.get(place)
        numbers = (lag.committed, lag.end, lag.records) if lag is not None else (NOBODY,) * 3
        who = (owner.member_id, owner.host, owner.client_id) if owner is not None else (NOBODY,) * 3
        rows.append((group.group_id, place.topic, place.partition, *numbers, *who))
    titles = (
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    )
    fixed = {"PARTITION": 10, "CURRENT-OFFSET": 15, "LOG-END-OFFSET": 15, "LAG": 15, "CLIENT-ID": 0}
    print_columns(titles, rows, fixed)


def _print_members(group: GroupDescription, *, is_verbose: bool) -> None:
    titles = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows = [
        [group.group_id, member.member_id, member.host, member.client_id, len(member.partitions)]
        for member in group.members
    ]
    if is_verbose:
        titles.append("ASSIGNMENT")
        for row, member in zip(rows, group.members, strict=True):
            by_topic: dict[str, list[int]] = {}
            for place in member.partitions:
                by_topic.setdefault(place.topic, []).append(place.partition)
            row.append(", ".join(f"{name}({','.join(map(str, parts))})" for name, parts in by_topic.items()) or NOBODY)
    print_columns(titles, rows, {"#PARTITIONS": 16, "ASSIGNMENT": 0})


async def _print_state(admin: Admin, group: GroupDescription) -> None:
    broker = (await admin.describe_cluster()).brokers
    where = next((f"{each.host}:{each.port}" for each in broker if each.id == group.coordinator), "?")
    row = (group.group_id, f"{where}  ({group.coordinator})", group.assignor or NOBODY, group.state, len(group.members))
    titles = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
    print_columns(titles, [row], {"COORDINATOR (ID)": 25, "ASSIGNMENT-STRATEGY": 20, "STATE": 20, "#MEMBERS": 0})


def print_columns(titles: Sequence[str], rows: Sequence[Sequence[Any]], fixed: dict[str, int]) -> None:
    """A table as Kafka's tool lays it out: an empty line, then columns of at least fifteen characters."""
    print()
    widths = [
        fixed.get(title, max(WIDTH_MIN, *(len(str(row[index])) for row in rows)) if rows else WIDTH_MIN)
        for index, title in enumerate(titles)
    ]
    for cells in [titles, *rows]:
        print(" ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True)))


async def _delete(admin: Admin, arguments: Namespace) -> None:
    groups = await _groups(admin, arguments)
    outcomes = await admin.delete_groups(groups)
    failed = {name: error for name, error in outcomes.items() if error is not None}
    for name, error in failed.items():
        print(f"* Group '{name}' could not be deleted due to: {error.message}")
    if failed:
        raise Failure("Error: Deletion of some consumer groups failed")
    names = ", ".join(f"'{name}'" for name in groups)
    print(f"Deletion of requested consumer groups ({names}) was successful.")


async def _reset(admin: Admin, arguments: Namespace) -> None:
    groups = await _groups(admin, arguments)
    rows = [row for name in groups for row in await kafka_reset_offsets.reset(admin, name, arguments)]
    if arguments.export:
        for _, topic, partition, offset in rows:
            print(f"{topic},{partition},{offset}")
    else:
        print_columns(("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows, {"PARTITION": 10, "NEW-OFFSET": 0})


async def _delete_offsets(admin: Admin, arguments: Namespace) -> None:
    if not arguments.topic:
        raise Failure("--topic must be specified with --delete-offsets")
    for name in await _groups(admin, arguments):
        places = await kafka_reset_offsets.places(admin, name, arguments)
        outcomes = await admin.delete_group_offsets(name, places)
        raise_first(outcomes.values(), prefix="Error: ")
        rows = [(place.topic, place.partition, "Successful") for place in sorted(places)]
        print_columns(("TOPIC", "PARTITION", "STATUS"), rows, {"PARTITION": 15, "STATUS": 0})
