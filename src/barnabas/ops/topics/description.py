"""All that ``barnabas topic describe`` and the console show of one topic, collected from the cluster."""

from __future__ import annotations

from typing import TypedDict

from barnabas.client.admin.client import Admin
from barnabas.client.admin.configs import ConfigSource, Resource, ResourceKind
from barnabas.client.cluster.metadata import TopicMetadata
from barnabas.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition


class PartitionDescription(TypedDict):
    partition: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    offline_replicas: list[int]
    log_start_offset: int | None  # None while nobody leads
    high_watermark: int | None
    cleaner: str | None  # what the leader's cleaner does with it; None if the broker does not say


class ConfigDescription(TypedDict):
    name: str
    value: str | None
    source: str


class Description(TypedDict):
    name: str
    id: str
    internal: bool
    partitions: list[PartitionDescription]
    configs: list[ConfigDescription]


async def describe(admin: Admin, topic: TopicMetadata, all_configs: bool) -> Description:
    led = [TopicPartition(topic.name, index) for index in topic.led_partitions]
    first = await admin.list_offsets(dict.fromkeys(led, EARLIEST_TIMESTAMP)) if led else {}
    last = await admin.list_offsets(dict.fromkeys(led, LATEST_TIMESTAMP)) if led else {}
    resource = Resource(ResourceKind.TOPIC, topic.name)
    configs = (await admin.describe_configs([resource]))[resource]
    if isinstance(configs, ApiError):
        raise configs
    cleaners = await _cleaners(admin, topic)
    partitions: list[PartitionDescription] = []
    for part in topic.partitions:
        place = TopicPartition(topic.name, part.partition)
        partitions.append(
            {
                "partition": part.partition,
                "leader": part.leader,
                "leader_epoch": part.leader_epoch,
                "replicas": list(part.replicas),
                "isr": list(part.isr),
                "offline_replicas": list(part.offline_replicas),
                "log_start_offset": first[place].offset if place in first else None,
                "high_watermark": last[place].offset if place in last else None,
                "cleaner": cleaners.get(place),
            }
        )
    return {
        "name": topic.name,
        "id": str(topic.id),
        "internal": topic.is_internal,
        "partitions": partitions,
        "configs": [
            {"name": entry.name, "value": entry.value, "source": entry.source.name.lower()}
            for entry in sorted(configs.values())
            if all_configs or entry.source is ConfigSource.TOPIC
        ],
    }


async def _cleaners(admin: Admin, topic: TopicMetadata) -> dict[TopicPartition, str]:
    """How each partition stands with the cleaner of its leader, as far as the brokers say."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for part in topic.partitions:
        if part.leader >= 0:
            by_leader.setdefault(part.leader, []).append(TopicPartition(topic.name, part.partition))
    found = {}
    for leader, places in sorted(by_leader.items()):
        try:
            directories = await admin.describe_log_dirs(leader, places, include_state=True)
        except ApiError:
            continue  # not allowed to see disks: the rest of the description is
        for directory in directories:
            found.update({place: row.cleaner for place, row in directory.replicas.items() if row.cleaner})
    return found
