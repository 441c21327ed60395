"""Topics: the list, one topic with its partitions, groups and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.client.admin.configs import Resource, ResourceKind
from barnabas.console.endpoint import Call, Endpoint
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.cluster.metadata import TopicMetadata
    from barnabas.console.view import ClusterView

TOPICS_MAX: Final = 20_000  # rows of one answer
GROUPS_MAX: Final = 200  # looked through for one topic


async def list_topics(call: Call) -> dict[str, Any]:
    view = call.view
    view.sampler.watch()
    topics = await view.topics.get()
    offsets = await view.offsets.get()
    sizes = await _sizes(view)
    policies = await view.policies.get()
    rows = [
        {
            **_row(view, topic, offsets, sizes),
            **policies.get(topic.name, {"cleanup_policy": None, "retention_ms": None, "overrides": 0}),
        }
        for topic in topics[:TOPICS_MAX]
    ]
    return {"topics": rows, "total": len(topics)}


def _row(view: ClusterView, topic: TopicMetadata, offsets: Any, sizes: dict[str, int]) -> dict[str, Any]:
    records = 0
    for part in topic.partitions:
        found = offsets.get((topic.name, part.partition))
        if found is not None:
            records += found.end - found.first
    rate = view.sampler.records.of(topic.name).rate()
    return {
        "name": topic.name,
        "internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replicas": max((len(part.replicas) for part in topic.partitions), default=0),
        "under_replicated": sum(len(part.isr) < len(part.replicas) for part in topic.partitions),
        "leaderless": sum(part.leader < 0 for part in topic.partitions),
        "records": records,
        "bytes": sizes.get(topic.name, 0),
        "rate": None if rate is None else round(rate, 1),
    }


async def _sizes(view: ClusterView) -> dict[str, int]:
    """Bytes of each topic, all replicas together."""
    found: dict[str, int] = {}
    for directories in (await view.disks.get()).values():
        for directory in directories if isinstance(directories, tuple) else ():
            for place, replica in directory.replicas.items():
                found[place.topic] = found.get(place.topic, 0) + replica.size_bytes
    return found


async def topic_of(call: Call) -> TopicMetadata:
    """The topic of the path; ApiError if there is none that the user may see."""
    name, topics = call.path("topic"), call.view.topics
    for _ in range(2):
        for topic in await topics.get():
            if topic.name == name:
                return topic
        topics.forget()  # the topic may be newer than the listing
    raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")


async def get_topic(call: Call) -> dict[str, Any]:
    view, topic = call.view, await topic_of(call)
    view.sampler.watch()
    offsets = await view.offsets.get()
    replica_bytes = await _replica_bytes(view, topic.name)
    sizes = await _sizes(view)
    policies = await view.policies.get()
    partitions = []
    for part in topic.partitions:
        found = offsets.get(TopicPartition(topic.name, part.partition))
        partitions.append(
            {
                "partition": part.partition,
                "leader": part.leader,
                "leader_epoch": part.leader_epoch,
                "replicas": list(part.replicas),
                "isr": list(part.isr),
                "offline": list(part.offline_replicas),
                "first_offset": None if found is None else found.first,
                "end_offset": None if found is None else found.end,
                "bytes": replica_bytes.get((part.partition, part.leader), 0),
            }
        )
    return {
        **_row(view, topic, offsets, sizes),
        **policies.get(topic.name, {}),
        "id": str(topic.id),
        "partition_rows": partitions,
        "rates": [(at_ms, round(rate, 2)) for at_ms, rate in view.sampler.records.of(topic.name).rates()],
    }


async def _replica_bytes(view: ClusterView, topic: str) -> dict[tuple[int, int], int]:
    """By partition and broker."""
    return {
        (place.partition, broker): replica.size_bytes
        for broker, directories in (await view.disks.get()).items()
        if isinstance(directories, tuple)
        for directory in directories
        for place, replica in directory.replicas.items()
        if place.topic == topic and not replica.is_future
    }


async def get_topic_groups(call: Call) -> dict[str, Any]:
    """Groups that have committed offsets of the topic, with their lag there."""
    from barnabas.client.group.lag import lags

    view, topic = call.view, await topic_of(call)
    rows = []
    groups = await view.groups.get()
    for group in groups[:GROUPS_MAX]:
        committed = {
            place: entry.offset
            for place, entry in (await view.admin.group_offsets(group.group_id)).items()
            if place.topic == topic.name
        }
        if not committed:
            continue
        found = await lags(view.admin.cluster, committed)
        known = [lag.behind_ms for lag in found.values() if lag.behind_ms is not None]
        rows.append(
            {
                "group": group.group_id,
                "state": group.state,
                "partitions": len(found),
                "lag": sum(lag.records for lag in found.values()),
                "behind_ms": max(known, default=None),
            }
        )
    return {"groups": rows, "looked_at": min(len(groups), GROUPS_MAX), "total": len(groups)}


async def get_topic_config(call: Call) -> dict[str, Any]:
    view, topic = call.view, await topic_of(call)
    resource = Resource(ResourceKind.TOPIC, topic.name)
    entries = (await view.admin.describe_configs([resource], include_documentation=True))[resource]
    if isinstance(entries, ApiError):
        raise entries
    return {"configs": config_rows(entries)}


def config_rows(entries: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": entry.name,
            "value": None if entry.is_sensitive else entry.value,
            "source": entry.source.name.lower(),
            "read_only": entry.is_read_only,
            "sensitive": entry.is_sensitive,
            "doc": entry.documentation or "",
        }
        for entry in sorted(entries.values())
    ]


_AT: Final = "/clusters/{cluster}/topics"
ENDPOINTS: Final = (
    Endpoint("GET", _AT, list_topics, "All topics with size, records, rate and health"),
    Endpoint("GET", f"{_AT}/{{topic}}", get_topic, "A topic with its partitions and rate history"),
    Endpoint("GET", f"{_AT}/{{topic}}/groups", get_topic_groups, "Groups that read the topic, with their lag"),
    Endpoint("GET", f"{_AT}/{{topic}}/config", get_topic_config, "Settings of the topic with documentation"),
)
