"""``barnabas cluster metadata | logdirs | quotas``: what clients are told, what lies where, who may do how much."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import attend, pairs
from barnabas.cli.terminal.output import NOBODY, is_table, print_rows
from barnabas.cli.terminal.verbs import admin_of, check_runs
from barnabas.ops.failure import Failure
from barnabas.ops.units import size

if TYPE_CHECKING:
    from barnabas.client.admin.brokers import LogDirectory
    from barnabas.client.admin.quotas import Quota
    from barnabas.client.cluster.metadata import TopicMetadata

DEFAULT: Final = "<default>"
KINDS: Final = ("user", "client-id", "ip")


# --- metadata ---------------------------------------------------------------------------------------------------------


def configure_metadata(parser: ArgumentParser) -> None:
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="only these (default: all)")


def metadata(arguments: Namespace) -> None:
    async def work() -> tuple[TopicMetadata, ...]:
        async with admin_of(arguments) as admin:
            return await admin.list_topics(include_internal=True)

    topics = [topic for topic in attend(work()) if not arguments.topics or topic.name in arguments.topics]
    absent = sorted({*arguments.topics} - {topic.name for topic in topics})
    if absent:
        raise Failure(f"there is no topic {absent[0]!r}; `barnabas topic list -i` shows what there is")
    columns = ("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OFFLINE")
    rows = [
        (
            topic.name,
            part.partition,
            part.leader,
            part.leader_epoch,
            *(_ids(arguments, each) for each in (part.replicas, part.isr, part.offline_replicas)),
        )
        for topic in topics
        for part in topic.partitions
    ]
    print_rows(arguments, columns, rows, right=("PARTITION", "LEADER", "EPOCH"))


def _ids(arguments: Namespace, brokers: tuple[int, ...]) -> object:
    return (",".join(map(str, brokers)) or NOBODY) if is_table(arguments) else list(brokers)


# --- logdirs ----------------------------------------------------------------------------------------------------------


def configure_logdirs(parser: ArgumentParser) -> None:
    parser.add_argument("--broker", type=int, action="append", metavar="ID", help="only this one; repeatable")
    parser.add_argument("-a", "--all", action="store_true", help="a line for each replica")


def logdirs(arguments: Namespace) -> None:
    async def work() -> dict[int, tuple[LogDirectory, ...]]:
        async with admin_of(arguments) as admin:
            cluster = await admin.describe_cluster()
            for broker in arguments.broker or ():
                await check_runs(admin, broker)
            alive = [broker.id for broker in cluster.brokers if broker.id not in cluster.fenced]
            return {broker: await admin.describe_log_dirs(broker) for broker in arguments.broker or alive}

    found = [(broker, each) for broker, directories in attend(work()).items() for each in directories]
    amount = size if is_table(arguments) else int
    if arguments.all:
        rows = [
            (broker, each.path, str(place), amount(replica.size_bytes), replica.offset_lag)
            for broker, each in found
            for place, replica in sorted(each.replicas.items())
        ]
        print_rows(arguments, ("BROKER", "DIRECTORY", "REPLICA", "SIZE", "LAG"), rows, right=("BROKER", "SIZE", "LAG"))
        return
    summary = [
        (
            broker,
            each.path,
            "ok" if each.error is None else each.error.error.name,
            len(each.replicas),
            amount(sum(replica.size_bytes for replica in each.replicas.values())),
            amount(each.usable_bytes),
            amount(each.total_bytes),
        )
        for broker, each in found
    ]
    columns = ("BROKER", "DIRECTORY", "STATE", "REPLICAS", "SIZE", "FREE", "DISK")
    print_rows(arguments, columns, summary, right=("BROKER", "REPLICAS", "SIZE", "FREE", "DISK"))


# --- quotas -----------------------------------------------------------------------------------------------------------


def configure_quotas(parser: ArgumentParser) -> None:
    for kind in KINDS:
        parser.add_argument(f"--{kind}", metavar="NAME", help=f"of this {kind}; {DEFAULT} for those without their own")
    parser.add_argument("--set", action="append", default=[], metavar="LIMIT=N", help="such as producer_byte_rate=1e6")
    parser.add_argument("--delete", action="append", default=[], metavar="LIMIT", help="take a limit away")


def quotas(arguments: Namespace) -> None:
    given = {kind: getattr(arguments, kind.replace("-", "_")) for kind in KINDS}
    entity = {kind: None if name == DEFAULT else name for kind, name in given.items() if name is not None}
    limits: dict[str, float | None] = {name: _number(text) for name, text in pairs(arguments.set).items()}
    limits |= dict.fromkeys(arguments.delete)
    if limits and not entity:
        raise Failure(f"whose? say --user, --client-id or --ip, each with a name or {DEFAULT}")

    async def work() -> tuple[Quota, ...]:
        async with admin_of(arguments) as admin:
            if limits:
                await admin.alter_quotas(entity, limits)
            return await admin.describe_quotas(entity or None)

    rows = [
        (*(_name(quota.entity, kind) for kind in KINDS), limit, f"{value:.15g}" if is_table(arguments) else value)
        for quota in attend(work())
        for limit, value in sorted(quota.limits.items())
    ]
    print_rows(arguments, ("USER", "CLIENT-ID", "IP", "LIMIT", "VALUE"), rows, right=("VALUE",))


def _name(entity: dict[str, str | None], kind: str) -> str:
    return (DEFAULT if entity[kind] is None else str(entity[kind])) if kind in entity else NOBODY


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Failure(f"{text!r} is no number") from None
