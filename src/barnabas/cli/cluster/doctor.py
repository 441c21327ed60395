"""``barnabas doctor``: what is wrong with this cluster, how that shows, and what mends it; on one screen.

What is asked is in ``doctor_facts.py``, what follows from it in ``doctor_cluster.py`` and ``doctor_groups.py``. The
exit code is 1 if anything is bad, so a script can ask it too.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import add_connection, attend
from barnabas.cli.terminal.output import add_output, is_table, print_value
from barnabas.cli.terminal.verbs import admin_of, now_ms
from barnabas.ops.doctor.finding import BAD, SEVERITIES, Finding, count
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.ops.doctor.facts import Facts

LOOK_SECONDS: Final = 1.0


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("-g", "--group", dest="groups", action="append", default=[], metavar="GROUP", help="only this one; repeatable")
    add("--broker", type=int, metavar="ID", help="only what is about this broker, such as what dies with it")
    add("--producer", metavar="TRANSACTIONAL-ID", help="why this producer was fenced")
    add(
        "--seconds",
        type=float,
        default=LOOK_SECONDS,
        metavar="N",
        help=f"how long to look for what moves (default {LOOK_SECONDS:g})",
    )
    add_output(parser)
    add_connection(parser)


def run(arguments: Namespace) -> int:
    headline, findings = attend(_examine(arguments))
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    if arguments.broker is not None:
        findings = [each for each in findings if f"broker {arguments.broker}" in f"{each.about} {each.mend}"]
    if is_table(arguments):
        _print(headline, findings)
    else:
        print_value(arguments, {"cluster": headline, "findings": [finding._asdict() for finding in findings]})
    return int(any(finding.severity == BAD for finding in findings))


async def _examine(arguments: Namespace) -> tuple[str, list[Finding]]:
    from barnabas.ops.doctor.cluster import harmless_death
    from barnabas.ops.doctor.examination import examine
    from barnabas.ops.doctor.groups import producer_findings

    if arguments.seconds <= 0:
        raise Failure("--seconds must be more than 0: what moves is told from what stands by looking twice")
    async with admin_of(arguments) as admin:
        if arguments.producer is not None:
            transaction = await admin.describe_transaction(arguments.producer)
            return arguments.producer, list(producer_findings(transaction, now_ms=now_ms()))
        facts, found = await examine(admin, seconds=arguments.seconds, now_ms=now_ms(), groups=arguments.groups)
    if arguments.broker is not None:
        known = [broker.id for broker in facts.cluster.brokers]
        if arguments.broker not in known:
            raise Failure(f"there is no broker {arguments.broker}; the cluster has {', '.join(map(str, known))}")
        is_alive = arguments.broker not in {*facts.cluster.fenced, *facts.unreachable}
        if is_alive and not any(each.about == f"if broker {arguments.broker} dies now" for each in found):
            found.append(harmless_death(facts, arguments.broker))
    return _headline(facts), found


def _headline(facts: Facts) -> str:
    partitions = sum(len(topic.partitions) for topic in facts.topics)
    parts = [f"cluster {facts.cluster.cluster_id}", count(len(facts.cluster.brokers), "broker")]
    if not facts.unreachable:
        parts += [f"{count(len(facts.topics), 'topic')} with {count(partitions, 'partition')}"]
        parts += [count(len(facts.groups), "group"), f"looked for {facts.seconds:g} s"]
    return " · ".join(parts)


def _print(headline: str, findings: list[Finding]) -> None:
    print(headline)
    for finding in findings:
        print(f"\n{finding.severity.upper():<8} {finding.about}: {finding.what}")
        print(f"         shown by  {finding.evidence}")
        print(f"         mend      {finding.mend}")
    counts = [count(sum(each.severity == name for each in findings), name) for name in SEVERITIES]
    print(f"\n{', '.join(text if 'bad' not in text else text.removesuffix('s') for text in counts)}")
