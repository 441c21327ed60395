"""A whole examination: look at the cluster twice, and collect all findings, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.ops.doctor.cluster import cluster_findings
from barnabas.ops.doctor.facts import look
from barnabas.ops.doctor.finding import SEVERITIES, Finding
from barnabas.ops.doctor.groups import group_findings

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.ops.doctor.facts import Facts


class Examination(NamedTuple):
    facts: Facts
    findings: list[Finding]


async def examine(admin: Admin, *, seconds: float, now_ms: int, groups: list[str] | None = None) -> Examination:
    """``groups`` limits the findings to these groups, unless a broker cannot be reached."""
    facts = await look(admin, seconds=seconds, now_ms=now_ms, groups=groups or [])
    found = [] if groups and not facts.unreachable else list(cluster_findings(facts))
    found += group_findings(facts)
    return Examination(facts, sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))
