"""``barnabas cluster``: info, health, quorum, and what is in ``cluster_details``: what the cluster is made of.

``health`` is made for scripts: its exit code is 0 only if every partition has a leader and all its replicas in sync;
each finding comes with what to do about it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.cluster import details
from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import NOBODY, is_table, print_facts, print_table, print_value
from barnabas.cli.terminal.verbs import Verb, admin_of, configure_verbs, nothing_more, now_ms, run_verb
from barnabas.ops.failure import Failure
from barnabas.ops.units import duration

if TYPE_CHECKING:
    from barnabas.client.admin.brokers import ClusterDescription
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.quorum import QuorumDescription
    from barnabas.client.cluster.metadata import PartitionMetadata, TopicMetadata


class Finding(NamedTuple):
    what: str
    remedy: str


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


# --- info ---------------------------------------------------------------------------------------------------------


def _info(arguments: Namespace) -> None:
    async def work() -> tuple[ClusterDescription, QuorumDescription, tuple[TopicMetadata, ...]]:
        async with admin_of(arguments) as admin:
            topics = await admin.list_topics(include_internal=True)
            return await admin.describe_cluster(), await admin.describe_quorum(), topics

    cluster, quorum, topics = attend(work())
    voters = [voter.id for voter in quorum.voters]
    led = {broker.id: 0 for broker in cluster.brokers}
    held = dict(led)
    for topic in topics:
        for partition in topic.partitions:
            led[partition.leader] = led.get(partition.leader, 0) + 1
            for replica in partition.replicas:
                held[replica] = held.get(replica, 0) + 1
    if not is_table(arguments):
        print_value(
            arguments,
            {
                "cluster_id": cluster.cluster_id,
                "controller": quorum.leader_id,
                "voters": voters,
                "topics": len(topics),
                "brokers": [
                    {**broker._asdict(), "is_fenced": broker.id in cluster.fenced}
                    | {"leads": led[broker.id], "replicas": held[broker.id]}
                    for broker in cluster.brokers
                ],
            },
        )
        return
    print_facts(
        {
            "cluster": cluster.cluster_id,
            "controller": quorum.leader_id,
            "voters": ", ".join(map(str, voters)),
            "topics": len(topics),
        }
    )
    print()
    print_table(
        ("BROKER", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS"),
        [
            (
                broker.id,
                f"{broker.host}:{broker.port}",
                broker.rack or NOBODY,
                "fenced" if broker.id in cluster.fenced else "up",
                led[broker.id],
                held[broker.id],
            )
            for broker in cluster.brokers
        ],
        right=("BROKER", "LEADS", "REPLICAS"),
        arguments=arguments,
    )


# --- health -------------------------------------------------------------------------------------------------------


def _health(arguments: Namespace) -> None:
    async def work() -> list[Finding]:
        async with admin_of(arguments) as admin:
            return await findings(admin)

    found = attend(work())
    if is_table(arguments):
        if not found:
            print("healthy: every partition has its leader and all its replicas")
        for finding in found:
            print(f"{finding.what}\n  {finding.remedy}")
    else:
        print_value(arguments, {"healthy": not found, "findings": [finding._asdict() for finding in found]})
    if found:
        raise Failure


async def findings(admin: Admin) -> list[Finding]:
    """What is wrong with the cluster now, worst first."""
    cluster = await admin.describe_cluster()
    quorum = await admin.describe_quorum()
    topics = await admin.list_topics(include_internal=True)
    leaderless = _partitions(topics, lambda partition: partition.leader < 0)
    short = _partitions(
        topics, lambda partition: partition.leader >= 0 and len(partition.isr) < len(partition.replicas)
    )
    found = []
    if leaderless:
        found.append(Finding(f"{_count(leaderless)} without a leader: {_some(leaderless)}", _remedy(cluster.fenced)))
    if quorum.leader_id < 0:
        found.append(Finding("no controller is active", "start enough controllers for a majority of the voters"))
    behind = [voter.id for voter in quorum.voters if voter.log_end_offset < quorum.high_watermark]
    if behind:
        found.append(
            Finding(
                f"voters {', '.join(map(str, behind))} of the quorum are behind or gone",
                "start them, or take them out: barnabas cluster quorum shows who they are",
            )
        )
    if cluster.fenced:
        names = ", ".join(map(str, sorted(cluster.fenced)))
        found.append(
            Finding(
                f"brokers {names} are fenced: not running, or not heard of", "start them, or barnabas broker forget"
            )
        )
    if short:
        found.append(Finding(f"{_count(short)} with replicas out of sync: {_some(short)}", _remedy(cluster.fenced)))
    return found


def _partitions(topics: tuple[TopicMetadata, ...], is_wrong: Callable[[PartitionMetadata], bool]) -> list[str]:
    return [f"{topic.name}-{part.partition}" for topic in topics for part in topic.partitions if is_wrong(part)]


def _count(names: list[str]) -> str:
    return f"{len(names)} partition{'s' if len(names) > 1 else ''}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _remedy(fenced: frozenset[int]) -> str:
    if fenced:
        return f"start broker {', '.join(map(str, sorted(fenced)))}"
    return "wait for the replicas to catch up, and look into the brokers' logs if they do not"


# --- quorum -------------------------------------------------------------------------------------------------------


def _quorum(arguments: Namespace) -> None:
    async def work() -> QuorumDescription:
        async with admin_of(arguments) as admin:
            return await admin.describe_quorum()

    quorum = attend(work())
    if not is_table(arguments):
        print_value(
            arguments,
            {
                **quorum._asdict(),
                "voters": [replica._asdict() for replica in quorum.voters],
                "observers": [replica._asdict() for replica in quorum.observers],
            },
        )
        return
    print_facts({"leader": quorum.leader_id, "epoch": quorum.leader_epoch, "high watermark": quorum.high_watermark})
    print()
    rows = [
        (
            replica.id,
            "leader" if replica.id == quorum.leader_id else role,
            replica.log_end_offset,
            max(0, quorum.high_watermark - replica.log_end_offset),
            duration(now_ms() - replica.last_caught_up_ms) if replica.last_caught_up_ms > 0 else NOBODY,
            replica.directory_id,
        )
        for role, replicas in (("voter", quorum.voters), ("observer", quorum.observers))
        for replica in replicas
    ]
    print_table(
        ("NODE", "ROLE", "LOG-END", "LAG", "CAUGHT UP BEFORE", "DIRECTORY"),
        rows,
        right=("NODE", "LOG-END", "LAG"),
        arguments=arguments,
    )


VERBS = {
    "info": Verb(nothing_more, _info, "show the brokers and what they carry"),
    "health": Verb(nothing_more, _health, "say what is wrong; the exit code is 0 if nothing is"),
    "quorum": Verb(nothing_more, _quorum, "show the controllers and how far each has got"),
    "metadata": Verb(details.configure_metadata, details.metadata, "show leaders and replicas of every partition"),
    "logdirs": Verb(details.configure_logdirs, details.logdirs, "show what lies in which directory of which broker"),
    "quotas": Verb(details.configure_quotas, details.quotas, "show and set how much users and clients may do"),
}
