"""The overview of a cluster: brokers, totals, traffic, disks; and what the doctor finds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from barnabas.console.endpoint import Call, Endpoint
from barnabas.model.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.client.admin.brokers import LogDirectory
    from barnabas.client.cluster.metadata import PartitionMetadata
    from barnabas.console.view import ClusterView


async def get_overview(call: Call) -> dict[str, Any]:
    view = call.view
    view.sampler.watch()
    described = await view.description.get()
    topics = await view.topics.get()
    disks = await view.disks.get()
    parts = [part for topic in topics for part in topic.partitions]
    return {
        "cluster_id": described.cluster_id,
        "controller_id": described.controller_id,
        "brokers": broker_rows(described, parts, disks),
        "topics": sum(not topic.is_internal for topic in topics),
        "internal_topics": sum(topic.is_internal for topic in topics),
        "partitions": len(parts),
        "under_replicated": sum(len(part.isr) < len(part.replicas) for part in parts),
        "leaderless": sum(part.leader < 0 for part in parts),
        "groups": await _group_states(view),
        "bytes": sum(_bytes(each) for each in disks.values()),
        "traffic": _traffic(view, [topic.name for topic in topics]),
        "busiest": _busiest(view, [topic.name for topic in topics if not topic.is_internal]),
    }


def broker_rows(described: Any, parts: list[PartitionMetadata], disks: dict[int, Any]) -> list[dict[str, Any]]:
    leaders = Counter(part.leader for part in parts)
    replicas = Counter(replica for part in parts for replica in part.replicas)
    rows = []
    for broker in described.brokers:
        directories = disks.get(broker.id)
        known = directories if isinstance(directories, tuple) else ()
        rows.append(
            {
                "id": broker.id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "fenced": broker.id in described.fenced,
                "controller": broker.id == described.controller_id,
                "leaders": leaders[broker.id],
                "replicas": replicas[broker.id],
                "bytes": _bytes(directories),
                "directories": len(known),
                "offline_directories": sum(each.error is not None for each in known),
                # Directories of one disk report the same figures, so that a sum would count the disk twice.
                "disk_total": max((each.total_bytes for each in known), default=-1),
                "disk_usable": min((each.usable_bytes for each in known if each.usable_bytes >= 0), default=-1),
            }
        )
    return rows


def _bytes(directories: tuple[LogDirectory, ...] | str | None) -> int:
    if not isinstance(directories, tuple):
        return 0
    return sum(replica.size_bytes for each in directories for replica in each.replicas.values())


async def _group_states(view: ClusterView) -> dict[str, int]:
    try:
        return dict(Counter(group.state or "Unknown" for group in await view.groups.get()))
    except BarnabasError:
        return {}


def _traffic(view: ClusterView, topics: list[str]) -> list[tuple[int, float]]:
    """Records written to all topics together for each second."""
    total: dict[int, float] = {}
    for name in topics:
        for at_ms, rate in view.sampler.records.of(name).rates():
            total[at_ms] = total.get(at_ms, 0.0) + rate
    return [(at_ms, round(total[at_ms], 2)) for at_ms in sorted(total)]


def _busiest(view: ClusterView, topics: list[str]) -> list[dict[str, Any]]:
    rates = {name: view.sampler.records.of(name).rate() or 0.0 for name in topics}
    names = sorted((name for name in topics if rates[name] > 0), key=lambda name: -rates[name])[:5]
    return [
        {
            "name": name,
            "rate": round(rates[name], 1),
            "points": [(at_ms, round(rate, 2)) for at_ms, rate in view.sampler.records.of(name).rates()[-60:]],
        }
        for name in names
    ]


async def get_doctor(call: Call) -> dict[str, Any]:
    examination = await call.view.doctor.get()
    return {"findings": [finding._asdict() for finding in examination.findings]}


_AT = "/clusters/{cluster}"
ENDPOINTS = (
    Endpoint("GET", f"{_AT}/overview", get_overview, "Health, brokers, totals and traffic of a cluster"),
    Endpoint("GET", f"{_AT}/doctor", get_doctor, "Problems of the cluster, each with evidence and the fix"),
)
