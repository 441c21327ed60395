"""``barnabas group``: list, describe, peek, seek, offset-delete, delete.

``describe`` shows how far each partition is behind, in records and in time; ``seek`` shows what it would do and does it
with ``--execute``, see ``group_seek.py``. What is behind what is computed in ``client/group/lag.py``.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.cli.cluster import group_seek
from barnabas.cli.records import group_peek
from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import NOBODY, is_table, print_facts, print_sentence, print_table, print_value
from barnabas.cli.terminal.verbs import (
    Outcome,
    Verb,
    add_yes,
    admin_of,
    complain,
    configure_verbs,
    confirm,
    join_offsets,
    matching,
    now_ms,
    outcomes_of,
    report,
    run_verb,
)
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.ops.groups.seek import Move, places_of
from barnabas.ops.units import duration

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.groups import GroupDescription, ListedGroup
    from barnabas.client.group.lag import Lag

WATCH_SECONDS: Final = 2.0
WITHOUT_MEMBERS: Final = "0; no member has ever joined: the group only stores offsets, as those of Spark pipelines do"
CLEAR: Final = "\x1b[H\x1b[2J"  # a terminal's way back to an empty screen


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def prepare(words: list[str]) -> list[str]:
    return join_offsets(words)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


# --- list -------------------------------------------------------------------------------------------------------------


def _configure_list(parser: ArgumentParser) -> None:
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="regular expressions that ids must match")
    parser.add_argument("-s", "--state", dest="states", action="append", default=[], help="only these; repeatable")
    parser.add_argument("-t", "--type", dest="types", action="append", default=[], help="classic or consumer")
    parser.add_argument("--lag-only", action="store_true", help="only those that are behind")
    _add_watch(parser)


class Summary(NamedTuple):
    group: ListedGroup
    lags: dict[TopicPartition, Lag]

    @property
    def records(self) -> int:
        return sum(lag.records for lag in self.lags.values())

    @property
    def behind_ms(self) -> int | None:
        """Of the partition that is furthest behind."""
        return max((lag.behind_ms for lag in self.lags.values() if lag.behind_ms is not None), default=None)


def _list(arguments: Namespace) -> None:
    async def look(admin: Admin) -> list[Summary]:
        groups = await admin.list_groups(states=arguments.states, types=arguments.types)
        groups = matching(arguments.patterns, groups, lambda each: each.group_id)
        found = [Summary(each, await _lags(admin, each.group_id)) for each in groups]
        return [each for each in found if each.records or not arguments.lag_only]

    def show(found: list[Summary]) -> None:
        if not is_table(arguments):
            values = [{**each.group._asdict(), "lag": each.records, "behind_ms": each.behind_ms} for each in found]
            print_value(arguments, values)
            return
        rows = [
            (
                each.group.group_id,
                each.group.type or NOBODY,
                each.group.state,
                each.group.coordinator,
                each.records,
                duration(each.behind_ms),
            )
            for each in found
        ]
        columns = ("GROUP", "TYPE", "STATE", "COORDINATOR", "LAG", "BEHIND")
        print_table(columns, rows, right=("COORDINATOR", "LAG", "BEHIND"), arguments=arguments)

    _watched(arguments, look, show)


async def _lags(admin: Admin, group_id: str) -> dict[TopicPartition, Lag]:
    from barnabas.client.group.lag import lags

    offsets = await admin.group_offsets(group_id)
    return await lags(admin.cluster, {place: entry.offset for place, entry in offsets.items()})


# --- describe ---------------------------------------------------------------------------------------------------------


def _configure_describe(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="GROUP")
    parser.add_argument("--lag-only", action="store_true", help="only partitions that are behind")
    parser.add_argument("--by-topic", action="store_true", help="a line for each topic, not for each partition")
    _add_watch(parser)


class Described(NamedTuple):
    group: GroupDescription
    lags: dict[TopicPartition, Lag]


def _describe(arguments: Namespace) -> None:
    async def look(admin: Admin) -> dict[str, Described | ApiError]:
        found: dict[str, Described | ApiError] = {}
        for name in arguments.names:
            try:
                found[name] = Described(await admin.describe_group(name), await _lags(admin, name))
            except ApiError as error:
                found[name] = error
        return found

    def show(found: dict[str, Described | ApiError]) -> None:
        described = [each for each in found.values() if isinstance(each, Described)]
        if not is_table(arguments):
            print_value(arguments, [_as_json(each) for each in described])
        else:
            for index, each in enumerate(described):
                if index:
                    print()
                _print_description(each, arguments)
        complain(Outcome(name, each) for name, each in found.items() if isinstance(each, ApiError))

    _watched(arguments, look, show)


def _print_description(described: Described, arguments: Namespace) -> None:
    group, lags = described
    print_facts(
        {
            "group": group.group_id,
            "type": group.type,
            "state": group.state,
            "assignor": group.assignor or NOBODY,
            "coordinator": f"broker {group.coordinator}",
            "members": WITHOUT_MEMBERS if group.is_simple else len(group.members),
            "lag": sum(lag.records for lag in lags.values()),
        }
    )
    chosen = {place: lag for place, lag in lags.items() if lag.records or not arguments.lag_only}
    if arguments.by_topic:
        print()
        _print_topics(chosen)
        return
    rows = _rows(group, chosen, with_idle=not arguments.lag_only)
    if rows:
        print()
        columns = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "BEHIND", "MEMBER", "HOST")
        print_table(columns, rows, right=("PARTITION", "COMMITTED", "END", "LAG", "BEHIND"))
    idle = [member for member in group.members if not member.partitions]
    if idle:
        print()
        print_sentence(f"without partitions: {', '.join(member.member_id for member in idle)}")


def _print_topics(lags: dict[TopicPartition, Lag]) -> None:
    rows = []
    for topic in sorted({place.topic for place in lags}):
        own = [lag for place, lag in lags.items() if place.topic == topic]
        behind = max((lag.behind_ms for lag in own if lag.behind_ms is not None), default=None)
        rows.append((topic, len(own), sum(lag.records for lag in own), duration(behind)))
    print_table(("TOPIC", "PARTITIONS", "LAG", "BEHIND"), rows, right=("PARTITIONS", "LAG", "BEHIND"))


def _rows(group: GroupDescription, lags: dict[TopicPartition, Lag], *, with_idle: bool) -> list[tuple[object, ...]]:
    """A row for each partition that is committed or, with ``with_idle``, assigned."""
    owner = {place: member for member in group.members for place in member.partitions}
    rows: list[tuple[object, ...]] = []
    for place in sorted({*lags, *owner} if with_idle else lags):
        lag, member = lags.get(place), owner.get(place)
        numbers = (lag.committed, lag.end, lag.records, duration(lag.behind_ms)) if lag is not None else (NOBODY,) * 4
        who = (member.instance_id or member.member_id, member.host) if member is not None else (NOBODY, NOBODY)
        rows.append((place.topic, place.partition, *numbers, *who))
    return rows


def _as_json(described: Described) -> dict[str, Any]:
    group, lags = described
    return {
        **group._asdict(),
        "members": [
            {**member._asdict(), "partitions": [str(place) for place in member.partitions]} for member in group.members
        ],
        "partitions": [
            {"topic": place.topic, "partition": place.partition, **lag._asdict(), "lag": lag.records}
            for place, lag in lags.items()
        ],
    }


# --- delete -----------------------------------------------------------------------------------------------------------


def _configure_delete(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="GROUP")
    add_yes(parser)


def _delete(arguments: Namespace) -> None:
    confirm(f"Delete {', '.join(arguments.names)} and all that was committed?", arguments)

    async def work() -> dict[str, ApiError | None]:
        async with admin_of(arguments) as admin:
            return await admin.delete_groups(arguments.names)

    report(arguments, outcomes_of(attend(work()), done="deleted"))


# --- offset-delete ----------------------------------------------------------------------------------------------------


def _configure_offset_delete(parser: ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument("topics", nargs="+", metavar="TOPIC[:0,1,...]", help="or only these partitions of it")
    add_yes(parser)


def _offset_delete(arguments: Namespace) -> None:
    confirm(f"Forget what {arguments.group} has committed for {', '.join(arguments.topics)}?", arguments)

    async def work() -> dict[TopicPartition, ApiError | None]:
        async with admin_of(arguments) as admin:
            places = await places_of(admin, arguments.topics)
            return await admin.delete_group_offsets(arguments.group, places)

    report(arguments, outcomes_of(attend(work()), done="forgotten"))


# --- seek -------------------------------------------------------------------------------------------------------------


def _seek(arguments: Namespace) -> None:
    async def work() -> list[Move]:
        async with admin_of(arguments) as admin:
            return await group_seek.seek_as_asked(admin, arguments, now_ms=now_ms())

    group_seek.show(attend(work()), arguments)


# --- what they share --------------------------------------------------------------------------------------------------


VERBS: Final = {
    "list": Verb(_configure_list, _list, "list groups and how far they are behind"),
    "describe": Verb(_configure_describe, _describe, "show members, offsets and lag of groups"),
    "peek": Verb(group_peek.configure, group_peek.run, "show the records that a group will read next"),
    "seek": Verb(group_seek.configure, _seek, "move what a group has committed; without --execute it only says how"),
    "offset-delete": Verb(_configure_offset_delete, _offset_delete, "forget what a group has committed for topics"),
    "delete": Verb(_configure_delete, _delete, "delete groups without members and all that they committed"),
}


def _add_watch(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-w",
        "--watch",
        nargs="?",
        type=_pause,
        const=WATCH_SECONDS,
        metavar="SECONDS",
        help=f"look again every so often (default {WATCH_SECONDS:g} s) until interrupted",
    )


def _pause(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < inf:
        raise ArgumentTypeError(f"{text} is no number of seconds to wait")
    return seconds


def _watched(arguments: Namespace, look: Callable[[Admin], Any], show: Callable[[Any], None]) -> None:
    """Look once, or again and again over one connection."""

    async def work() -> Any:
        async with admin_of(arguments) as admin:
            while True:
                found = await look(admin)
                if arguments.watch is None:
                    return found
                if sys.stdout.isatty():
                    print(CLEAR, end="")
                show(found)
                sys.stdout.flush()
                import asyncio

                await asyncio.sleep(arguments.watch)

    show(attend(work(), is_long=arguments.watch is not None))
