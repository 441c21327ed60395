"""Settings of topics, brokers and groups as the admin client reads and changes them.

Changes go out as IncrementalAlterConfigs only: what is not named stays as it is, whoever else is changing it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.model.errors import ApiError, error_of
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse


class ResourceKind(enum.IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    kind: ResourceKind
    name: str  # of a broker its id; the empty name is all brokers


class ConfigSource(enum.IntEnum):
    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigEntry(NamedTuple):
    name: str
    value: str | None  # None too if it is a secret
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


class Operation(enum.IntEnum):
    SET = 0
    DELETE = 1  # back to the default
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    value: str | None = None
    operation: Operation = Operation.SET


class ConfigAdmin(AdminCalls):
    async def describe_configs(
        self, resources: Iterable[Resource], *, include_documentation: bool = False
    ) -> dict[Resource, dict[str, ConfigEntry] | ApiError]:
        outcomes: dict[Resource, dict[str, ConfigEntry] | ApiError] = {}
        for broker, group in _by_broker(resources):
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsRequest.DescribeConfigsResource(
                        resource_type=resource.kind, resource_name=resource.name, configuration_keys=None
                    )
                    for resource in group
                ],
                include_documentation=include_documentation,
            )
            answer = await self._broker(broker, request, DescribeConfigsResponse)
            for result in answer.results:
                error = problem(result.error_code, result.error_message, about=result.resource_name)
                resource = Resource(ResourceKind(result.resource_type), result.resource_name)
                outcomes[resource] = error or {entry.name: _entry(entry) for entry in result.configs}
        return outcomes

    async def list_config_resources(self, kinds: Iterable[ResourceKind] = ()) -> tuple[Resource, ...]:
        """What has settings of its own: of these kinds, or of all."""
        request = ListConfigResourcesRequest(resource_types=[int(kind) for kind in kinds])
        answer = await self._broker(None, request, ListConfigResourcesResponse)
        if answer.error_code:
            raise ApiError(error_of(answer.error_code))
        return tuple(
            sorted(Resource(ResourceKind(each.resource_type), each.resource_name) for each in answer.config_resources)
        )

    async def alter_configs(
        self, changes: Mapping[Resource, Iterable[Change]], *, validate_only: bool = False
    ) -> dict[Resource, ApiError | None]:
        outcomes: dict[Resource, ApiError | None] = {}
        for broker, group in _by_broker(changes):
            request = IncrementalAlterConfigsRequest(
                resources=[_alteration(resource, changes[resource]) for resource in group], validate_only=validate_only
            )
            answer = await self._broker(broker, request, IncrementalAlterConfigsResponse)
            for entry in answer.responses:
                resource = Resource(ResourceKind(entry.resource_type), entry.resource_name)
                outcomes[resource] = problem(entry.error_code, entry.error_message, about=entry.resource_name)
        return outcomes


def _by_broker(resources: Iterable[Resource]) -> list[tuple[int | None, list[Resource]]]:
    """A broker's own settings are asked of that broker; everything else of any."""
    groups: dict[int | None, list[Resource]] = {}
    for resource in resources:
        is_own = resource.kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and resource.name != ""
        groups.setdefault(int(resource.name) if is_own else None, []).append(resource)
    return list(groups.items())


def _entry(entry: DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    known = entry.config_source in ConfigSource._value2member_map_
    return ConfigEntry(
        entry.name,
        entry.value,
        ConfigSource(entry.config_source) if known else ConfigSource.UNKNOWN,
        entry.read_only,
        entry.is_sensitive,
        entry.documentation,
    )


def _alteration(resource: Resource, changes: Iterable[Change]) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
    return IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=resource.kind,
        resource_name=resource.name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(
                name=change.name, config_operation=change.operation, value=change.value
            )
            for change in changes
        ],
    )
