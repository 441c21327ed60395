"""One cluster as one user sees it: the admin client of that user, listings that are cached, and history.

Everything that pages show comes from here or from the client directly; no endpoint keeps state of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.client.admin.client import Admin
from barnabas.client.admin.configs import ConfigSource, Resource, ResourceKind
from barnabas.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, list_offsets
from barnabas.client.settings.client import Settings
from barnabas.console.cached import Cached
from barnabas.console.sampler import Sampler
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.ops.doctor.examination import Examination, examine

if TYPE_CHECKING:
    from barnabas.client.admin.brokers import ClusterDescription, LogDirectory
    from barnabas.client.admin.groups import ListedGroup
    from barnabas.client.cluster.metadata import TopicMetadata
    from barnabas.client.serdes.registry import Registry

LISTING_SECONDS: Final = 2.0
OFFSETS_SECONDS: Final = 3.0
DISKS_SECONDS: Final = 5.0
POLICIES_SECONDS: Final = 30.0
DOCTOR_SECONDS: Final = 20.0
DOCTOR_LOOK_SECONDS: Final = 1.0


class Offsets(NamedTuple):
    first: int
    end: int


class ClusterView:
    def __init__(self, name: str, given: Mapping[str, str], *, registry: Registry | None = None) -> None:
        self.name = name
        self.given = given
        self.registry = registry
        self.admin = Admin(Settings.of(given))
        self.used_at = time.monotonic()
        self.description: Cached[ClusterDescription] = Cached(self.admin.describe_cluster, seconds=LISTING_SECONDS)
        self.topics: Cached[tuple[TopicMetadata, ...]] = Cached(self.admin.cluster.all_topics, seconds=LISTING_SECONDS)
        self.offsets: Cached[dict[TopicPartition, Offsets]] = Cached(self._offsets, seconds=OFFSETS_SECONDS)
        self.disks: Cached[dict[int, tuple[LogDirectory, ...] | str]] = Cached(self._disks, seconds=DISKS_SECONDS)
        self.groups: Cached[list[ListedGroup]] = Cached(self.admin.list_groups, seconds=LISTING_SECONDS)
        self.policies: Cached[dict[str, dict[str, Any]]] = Cached(self._policies, seconds=POLICIES_SECONDS)
        self.doctor: Cached[Examination] = Cached(self._examine, seconds=DOCTOR_SECONDS)
        self.sampler = Sampler(self.admin)

    async def close(self) -> None:
        await self.sampler.stop()
        await self.admin.close()

    def forget(self) -> None:
        """After a change: the next page shows what is there now."""
        for each in (self.topics, self.offsets, self.groups, self.policies, self.disks, self.doctor):
            each.forget()

    async def _offsets(self) -> dict[TopicPartition, Offsets]:
        """The first offset and the end of every partition that has a leader."""
        places = [
            TopicPartition(topic.name, index) for topic in await self.topics.get() for index in topic.led_partitions
        ]
        if not places:
            return {}
        cluster = self.admin.cluster
        try:
            first = await list_offsets(cluster, dict.fromkeys(places, EARLIEST_TIMESTAMP), timeout_ms=5000)
            last = await list_offsets(cluster, dict.fromkeys(places, LATEST_TIMESTAMP), timeout_ms=5000)
        except BarnabasError:  # a topic that was deleted meanwhile, or that the user may not describe
            return await self._offsets_by_topic(places)
        return {place: Offsets(first[place].offset, last[place].offset) for place in places}

    async def _offsets_by_topic(self, places: list[TopicPartition]) -> dict[TopicPartition, Offsets]:
        found: dict[TopicPartition, Offsets] = {}
        cluster = self.admin.cluster
        for name in dict.fromkeys(place.topic for place in places):
            of_topic = [place for place in places if place.topic == name]
            try:
                first = await list_offsets(cluster, dict.fromkeys(of_topic, EARLIEST_TIMESTAMP), timeout_ms=0)
                last = await list_offsets(cluster, dict.fromkeys(of_topic, LATEST_TIMESTAMP), timeout_ms=0)
            except BarnabasError:
                continue
            found |= {place: Offsets(first[place].offset, last[place].offset) for place in of_topic}
        return found

    async def _disks(self) -> dict[int, tuple[LogDirectory, ...] | str]:
        """The log directories of each broker, or why they are not known."""
        described = await self.description.get()

        async def of(broker: int) -> tuple[LogDirectory, ...] | str:
            try:
                return await self.admin.describe_log_dirs(broker, include_state=True)
            except BarnabasError as error:
                return str(error)

        alive = [each.id for each in described.brokers if each.id not in described.fenced]
        return dict(zip(alive, await asyncio.gather(*map(of, alive)), strict=True))

    async def _policies(self) -> dict[str, dict[str, Any]]:
        """Settings of each topic that lists show, with whether the topic sets them itself."""
        names = [topic.name for topic in await self.topics.get()]
        described = await self.admin.describe_configs([Resource(ResourceKind.TOPIC, name) for name in names])
        found: dict[str, dict[str, Any]] = {}
        for resource, entries in described.items():
            if isinstance(entries, ApiError):
                continue
            found[resource.name] = {
                "cleanup_policy": _value(entries, "cleanup.policy"),
                "retention_ms": _number(_value(entries, "retention.ms")),
                "overrides": sum(entry.source is ConfigSource.TOPIC for entry in entries.values()),
            }
        return found

    async def _examine(self) -> Examination:
        return await examine(self.admin, seconds=DOCTOR_LOOK_SECONDS, now_ms=int(time.time() * 1000))


def _value(entries: Any, name: str) -> str | None:
    entry = entries.get(name)
    return None if entry is None else entry.value


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
