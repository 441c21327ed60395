"""The dynamic configurations of topics, brokers, the whole cluster and groups, as the log has set them.

Values are texts. What a name means, what its default is and which values are allowed is not known here; see
``config_schema``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from immutables import Map

from barnabas.metadata.records import ConfigRecord


class ResourceType(enum.IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    type: int
    name: str


CLUSTER_DEFAULT: Final = ConfigResource(ResourceType.BROKER, "")
_NO_VALUES: Map[str, str] = Map()


@dataclass(frozen=True, slots=True)
class ConfigsImage:
    by_resource: Map[ConfigResource, Map[str, str]] = field(default_factory=Map)

    def of(self, resource: ConfigResource) -> Mapping[str, str]:
        return self.by_resource.get(resource, _NO_VALUES)

    def of_topic(self, name: str) -> Mapping[str, str]:
        return self.of(ConfigResource(ResourceType.TOPIC, name))

    def of_broker(self, broker_id: int) -> Mapping[str, str]:
        return self.of(ConfigResource(ResourceType.BROKER, str(broker_id)))

    def of_cluster(self) -> Mapping[str, str]:
        return self.of(CLUSTER_DEFAULT)

    def records(self) -> Iterator[ConfigRecord]:
        for resource in sorted(self.by_resource):
            values = self.by_resource[resource]
            for name in sorted(values):
                yield ConfigRecord(
                    resource_type=resource.type, resource_name=resource.name, name=name, value=values[name]
                )


class ConfigsBuilder:
    __slots__ = ("_by_resource", "_open", "changed")

    def __init__(self, image: ConfigsImage) -> None:
        self._by_resource = image.by_resource.mutate()
        self._open: dict[ConfigResource, Any] = {}
        self.changed: dict[ConfigResource, None] = {}

    def set(self, record: ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        values = self._open.get(resource)
        if values is None:
            values = self._open[resource] = self._by_resource.get(resource, _NO_VALUES).mutate()
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value
        self.changed[resource] = None

    def remove(self, resource: ConfigResource) -> None:
        if self._open.pop(resource, None) is not None or resource in self._by_resource:
            self._by_resource.pop(resource, None)
            self.changed[resource] = None

    def build(self) -> ConfigsImage:
        for resource, mutation in self._open.items():
            values = mutation.finish()
            if values:
                self._by_resource[resource] = values
            else:
                self._by_resource.pop(resource, None)
        return ConfigsImage(self._by_resource.finish())
