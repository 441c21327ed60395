"""``barnabas reassign``: plan, run, status, cancel: move partitions from broker to broker.

A plan is Kafka's own JSON, so plans of ``kafka-reassign-partitions`` work too. The brokers copy in the background;
``run`` waits for them and shows how far they are, unless it is told not to. What a limit needs is in
``reassign_throttle``, how far a replica is in ``reassign_progress``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import NOBODY, is_table, print_table, print_value
from barnabas.cli.terminal.verbs import (
    Verb,
    add_yes,
    admin_of,
    complain,
    configure_verbs,
    confirm,
    outcomes_of,
    run_verb,
)
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure
from barnabas.ops.reassign.plan import plan
from barnabas.ops.units import size

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.ops.reassign.progress import Progress
    from barnabas.ops.reassign.throttle import Changes

LOOK_SECONDS: Final = 0.5

Targets = dict[TopicPartition, tuple[int, ...]]


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


# --- plan ---------------------------------------------------------------------------------------------------------


def _configure_plan(parser: ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="*", help="topics to move; all if none is named")
    parser.add_argument("--brokers", metavar="ID,ID", help="the brokers that may hold them; all if not given")
    parser.add_argument("-r", "--replication-factor", type=int, metavar="N", help="how many replicas each shall have")
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="write the plan there, for `reassign run`")


def _plan(arguments: Namespace) -> None:
    wanted = _broker_ids(arguments.brokers)

    async def work() -> tuple[Targets, dict[TopicPartition, tuple[int, ...]]]:
        async with admin_of(arguments) as admin:
            now = await placement(admin, arguments.topics)
            racks = await alive(admin)
            chosen = {broker: racks[broker] for broker in (wanted or sorted(racks)) if broker in racks}
            unknown = sorted(set(wanted) - set(racks))
            if unknown:
                raise Failure(f"there is no broker {', '.join(map(str, unknown))} that runs")
            return planned(now, chosen, arguments.replication_factor), now

    targets, now = attend(work())
    if arguments.file is not None:
        arguments.file.write_text(plan_text(targets))
    if is_table(arguments):
        if not targets:
            print("nothing needs to move")
            return
        print_changes(targets, now, arguments)
        if arguments.file is not None:
            print(f"\nbarnabas reassign run {arguments.file}")
    else:
        print_value(arguments, plan_value(targets))


def planned(
    now: Mapping[TopicPartition, Sequence[int]], brokers: Mapping[int, str | None], factor: int | None
) -> Targets:
    try:
        return plan(now, brokers, replication_factor=factor)
    except ValueError as error:
        raise Failure(str(error)) from error


def print_changes(targets: Targets, now: Mapping[TopicPartition, Sequence[int]], arguments: Namespace) -> None:
    rows = [(str(key), _ids(now[key]), _ids(replicas)) for key, replicas in sorted(targets.items())]
    print_table(("PARTITION", "NOW", "THEN"), rows, arguments=arguments)


def plan_value(targets: Mapping[TopicPartition, Sequence[int]]) -> dict[str, Any]:
    partitions = [
        {"topic": key.topic, "partition": key.partition, "replicas": list(replicas)}
        for key, replicas in sorted(targets.items())
    ]
    return {"version": 1, "partitions": partitions}


def plan_text(targets: Mapping[TopicPartition, Sequence[int]]) -> str:
    return json.dumps(plan_value(targets), indent=2) + "\n"


def read_plan(path: Path) -> Targets:
    try:
        entries = json.loads(path.read_text())["partitions"]
        return {
            TopicPartition(entry["topic"], entry["partition"]): tuple(int(replica) for replica in entry["replicas"])
            for entry in entries
        }
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"{path} is no plan; `barnabas reassign plan --file {path}` writes one") from error


# --- run, status, cancel ------------------------------------------------------------------------------------------


def _configure_run(parser: ArgumentParser) -> None:
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a file that `reassign plan --file` wrote")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until everything has moved")
    parser.add_argument(
        "--throttle", metavar="RATE", help="bytes a second that each broker may spend on it, like 500000 or 10MB"
    )
    add_yes(parser)


def _run(arguments: Namespace) -> None:
    targets = read_plan(arguments.plan)
    if arguments.throttle is not None and arguments.no_wait:
        raise Failure("--throttle is taken off when all has moved, so it cannot be had with --no-wait")
    bytes_per_second = None if arguments.throttle is None else _rate(arguments.throttle)
    if not targets:
        print("the plan is empty: nothing was done")
        return
    confirm(f"Move {len(targets)} partitions?", arguments)

    async def work() -> None:
        async with admin_of(arguments) as admin:
            if bytes_per_second is None:
                await move(admin, targets, is_waiting=not arguments.no_wait)
            else:
                await _move_slowly(admin, targets, bytes_per_second, arguments)

    attend(work(), is_long=True)


def _rate(text: str) -> int:
    from barnabas.ops.reassign.throttle import rate

    try:
        return rate(text)
    except ValueError as error:
        raise Failure(str(error)) from error


async def _move_slowly(admin: Admin, targets: Targets, bytes_per_second: int, arguments: Namespace) -> None:
    from barnabas.ops.reassign.throttle import limits, no_limits

    now = await placement(admin, {key.topic for key in targets})
    unknown = sorted(set(targets) - set(now))
    if unknown:
        raise Failure(f"there is no partition {', '.join(map(str, unknown))}")
    for key, each in (await admin.list_reassignments(targets)).items():  # this may be the second try
        now[key] = tuple(replica for replica in now[key] if replica not in each.adding)
    running = await alive(admin)
    await _throttle(admin, limits(now, targets, bytes_per_second, brokers=running))
    try:
        await move(admin, targets, is_waiting=True)
    except asyncio.CancelledError:
        again = f"barnabas reassign run {arguments.plan} --throttle {arguments.throttle}"
        print(f"\nthe moves go on, within the limit: `{again}` waits for them and takes it off", file=sys.stderr)
        raise
    except BaseException:
        await _throttle(admin, no_limits({key.topic for key in targets}, brokers=running))
        raise
    await _throttle(admin, no_limits({key.topic for key in targets}, brokers=await alive(admin)))


async def _throttle(admin: Admin, changes: Changes) -> None:
    answers = await admin.alter_configs(changes)
    complain(outcomes_of({resource.name: answer for resource, answer in answers.items()}))


async def move(admin: Admin, targets: Targets, *, is_waiting: bool) -> None:
    """Have partitions moved, and wait for it with a line of progress."""
    answers = await admin.alter_reassignments(targets)
    complain(outcomes_of(answers))
    if not is_waiting:
        print(f"{len(targets)} partitions are on their way: barnabas reassign status")
        return
    while under_way := await admin.list_reassignments(targets):
        _show(len(targets) - len(under_way), len(targets))
        await asyncio.sleep(LOOK_SECONDS)
    _show(len(targets), len(targets), is_last=True)


def _show(done: int, count: int, *, is_last: bool = False) -> None:
    if sys.stderr.isatty():
        width = 30
        bar = "█" * (width * done // count) + "░" * (width - width * done // count)
        print(f"\r{bar} {done}/{count} partitions", end="\n" if is_last else "", file=sys.stderr, flush=True)
    elif is_last:
        print(f"{count} partitions moved")


def _status(arguments: Namespace) -> None:
    from barnabas.ops.reassign.progress import progress_of

    async def work() -> Any:
        async with admin_of(arguments) as admin:
            under_way = await admin.list_reassignments()
            if not under_way:
                return {}, {}
            return under_way, await progress_of(admin, under_way, brokers=await alive(admin))

    under_way, progress = attend(work())
    if not is_table(arguments):
        print_value(
            arguments,
            [
                {
                    "topic": key.topic,
                    "partition": key.partition,
                    **{name: list(ids) for name, ids in each._asdict().items()},
                    "progress": [{**part._asdict(), "percent": part.percent} for part in progress[key]],
                }
                for key, each in sorted(under_way.items())
            ],
        )
        return
    if not under_way:
        print("nothing is being moved")
        return
    rows = [
        (str(key), _ids(each.replicas), _ids(each.removing), *cells)
        for key, each in sorted(under_way.items())
        for cells in [_cells(part) for part in progress[key]] or [(NOBODY,) * 4]
    ]
    columns = ("PARTITION", "REPLICAS", "REMOVING", "ADDING", "COPIED", "OF", "DONE")
    print_table(columns, rows, right=("COPIED", "OF", "DONE"), arguments=arguments)


def _cells(part: Progress) -> tuple[str, str, str, str]:
    def said(count: int | None) -> str:
        return NOBODY if count is None else size(count)

    done = NOBODY if part.percent is None else f"{part.percent} %"
    return str(part.broker), said(part.copied_bytes), said(part.size_bytes), done


def _cancel(arguments: Namespace) -> None:
    from barnabas.ops.reassign.throttle import no_limits

    async def work() -> int:
        async with admin_of(arguments) as admin:
            under_way = await admin.list_reassignments()
            if under_way:
                complain(outcomes_of(await admin.alter_reassignments(dict.fromkeys(under_way))))
                await _throttle(admin, no_limits({key.topic for key in under_way}, brokers=await alive(admin)))
            return len(under_way)

    confirm("Stop all moves that are under way?", arguments)
    print(f"{attend(work())} moves were stopped")


# --- what is where ------------------------------------------------------------------------------------------------


async def placement(admin: Admin, names: Iterable[str] = ()) -> dict[TopicPartition, tuple[int, ...]]:
    """Where the replicas of some topics, or of all, are now."""
    wanted = set(names)
    topics = [topic for topic in await admin.list_topics(include_internal=True) if not wanted or topic.name in wanted]
    missing = sorted(wanted - {topic.name for topic in topics})
    if missing:
        raise Failure(f"there is no topic {', '.join(missing)}")
    return {TopicPartition(topic.name, part.partition): part.replicas for topic in topics for part in topic.partitions}


async def alive(admin: Admin) -> dict[int, str | None]:
    """The brokers that run, with their racks."""
    cluster = await admin.describe_cluster()
    return {broker.id: broker.rack for broker in cluster.brokers if broker.id not in cluster.fenced}


def _broker_ids(text: str | None) -> list[int]:
    try:
        return sorted({int(part) for part in text.split(",")}) if text else []
    except ValueError:
        raise Failure(f"--brokers takes ids like 1,2,3, not {text!r}") from None


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids)) or "-"


VERBS = {
    "plan": Verb(_configure_plan, _plan, "work out where partitions should be, and change nothing"),
    "run": Verb(_configure_run, _run, "carry out a plan"),
    "status": Verb(lambda parser: None, _status, "show what is being moved, and how far it is"),
    "cancel": Verb(add_yes, _cancel, "stop what is being moved, put it back, and take a limit off"),
}
