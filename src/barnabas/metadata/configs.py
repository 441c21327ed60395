"""IncrementalAlterConfigs and AlterConfigs: a resource changes as a whole or not at all, each on its own.

What a resource may be given is checked in ``config_checks``; what a change then does is up to those who watch the
picture. Describing configurations needs no decision and is not here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from barnabas.metadata.config_checks import check, table_of
from barnabas.metadata.config_schema import MIN_INSYNC_REPLICAS, ConfigSchema
from barnabas.metadata.configs_image import ConfigResource, ResourceType
from barnabas.metadata.decision import Decision, Facts, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.records import ClearElrRecord, ConfigRecord
from barnabas.model.errors import INVALID_CONFIG, INVALID_REQUEST, ApiError
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
_OPERATIONS: Final = (SET, DELETE, APPEND, SUBTRACT)
_RESOURCE_TYPES: Final = frozenset(ResourceType)


class _Outcome(NamedTuple):
    resource: ConfigResource
    error: ApiError | None

    @property
    def code(self) -> int:
        return self.error.error.code if self.error else 0

    @property
    def message(self) -> str | None:
        return self.error.message if self.error else None


def incremental_alter_configs(
    image: ClusterImage, request: IncrementalAlterConfigsRequest, facts: Facts
) -> Decision[IncrementalAlterConfigsResponse]:
    records, outcomes = _alter(image, request.resources, facts.schema, incremental_changes)
    responses = [
        IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
            error_code=outcome.code,
            error_message=outcome.message,
            resource_type=outcome.resource.type,
            resource_name=outcome.resource.name,
        )
        for outcome in outcomes
    ]
    return Decision([] if request.validate_only else records, IncrementalAlterConfigsResponse(responses=responses))


def alter_configs(image: ClusterImage, request: AlterConfigsRequest, facts: Facts) -> Decision[AlterConfigsResponse]:
    """The old way: what a request does not name goes back to its default."""
    records, outcomes = _alter(image, request.resources, facts.schema, whole_changes)
    responses = [
        AlterConfigsResponse.AlterConfigsResourceResponse(
            error_code=outcome.code,
            error_message=outcome.message,
            resource_type=outcome.resource.type,
            resource_name=outcome.resource.name,
        )
        for outcome in outcomes
    ]
    return Decision([] if request.validate_only else records, AlterConfigsResponse(responses=responses))


def incremental_changes(
    image: ClusterImage, schema: ConfigSchema, entry: IncrementalAlterConfigsRequest.AlterConfigsResource
) -> Mapping[str, str | None]:
    """What a resource would be given, and, as None, what it would be without."""
    _check_names(config.name for config in entry.configs)
    _check_not_null(
        config.name for config in entry.configs if config.config_operation != DELETE and config.value is None
    )
    resource = ConfigResource(entry.resource_type, entry.resource_name)
    return {config.name: _operated(image, schema, resource, config) for config in entry.configs}


def whole_changes(
    image: ClusterImage, schema: ConfigSchema, entry: AlterConfigsRequest.AlterConfigsResource
) -> Mapping[str, str | None]:
    """The same for a request that names all that a resource shall have."""
    _check_names(config.name for config in entry.configs)
    _check_not_null(config.name for config in entry.configs if config.value is None)
    resource = ConfigResource(entry.resource_type, entry.resource_name)
    table_of(schema, resource)
    wanted: dict[str, str | None] = {config.name: config.value for config in entry.configs}
    forgotten = [name for name in sorted(image.configs.of(resource)) if name not in wanted]
    return {**wanted, **dict.fromkeys(forgotten)}


_E = TypeVar("_E", IncrementalAlterConfigsRequest.AlterConfigsResource, AlterConfigsRequest.AlterConfigsResource)


def _alter(
    image: ClusterImage,
    entries: Iterable[_E],
    schema: ConfigSchema,
    changes_of: Callable[[ClusterImage, ConfigSchema, _E], Mapping[str, str | None]],
) -> tuple[list[Message], list[_Outcome]]:
    records: list[Message] = []
    outcomes: list[_Outcome] = []
    entries = list(entries)
    counts = Counter((entry.resource_type, entry.resource_name) for entry in entries)
    for entry in entries:
        resource = ConfigResource(entry.resource_type, entry.resource_name)
        try:
            _check_once(counts[resource])
            _check_type(resource)
            changes = changes_of(image, schema, entry)
            check(image, schema, resource, changes)
            new_records = list(config_records(image, resource, changes))
            check_size(len(records) + len(new_records))
            records += new_records
            outcomes.append(_Outcome(resource, None))
        except ApiError as error:
            outcomes.append(_Outcome(resource, error))
    return [*records, *_clear_elr_records(image, records)], outcomes


def config_records(
    image: ClusterImage, resource: ConfigResource, changes: Mapping[str, str | None]
) -> Iterator[ConfigRecord]:
    """Only what differs; but a broker that is told the same again reads its files (a new certificate) again."""
    current = image.configs.of(resource)
    for name, value in changes.items():
        if value != current.get(name) or resource.type == ResourceType.BROKER:
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)


def _clear_elr_records(image: ClusterImage, records: Iterable[Message]) -> Iterator[ClearElrRecord]:
    """Who was eligible under one minimum need not be under another."""
    if not image.has_elr:
        return
    for record in records:
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS:
            yield ClearElrRecord(topic_name=record.resource_name if record.resource_type == ResourceType.TOPIC else "")


def _operated(
    image: ClusterImage,
    schema: ConfigSchema,
    resource: ConfigResource,
    config: IncrementalAlterConfigsRequest.AlterableConfig,
) -> str | None:
    """The value that an operation leaves."""
    table = table_of(schema, resource)
    operation = config.config_operation
    if operation not in _OPERATIONS:
        raise ApiError(
            INVALID_REQUEST,
            f"a setting is set (0), deleted (1), appended to (2) or subtracted from (3), not {operation}",
        )
    if operation in (SET, DELETE):
        return config.value if operation == SET else None
    if not schema.is_list(table, config.name):
        raise ApiError(
            INVALID_CONFIG,
            f"{config.name} is no list that could be appended to or subtracted from: set it",
        )
    setting = table[config.name]
    current = image.configs.of(resource).get(config.name)
    parts = [part for part in (setting.text(setting.default) or "" if current is None else current).split(",") if part]
    for part in (config.value or "").split(","):
        if operation == APPEND and part not in parts:
            parts.append(part)
        elif operation == SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _check_once(count: int) -> None:
    if count > 1:
        raise ApiError(INVALID_REQUEST, "the request names the resource twice")


def _check_type(resource: ConfigResource) -> None:
    if resource.type not in _RESOURCE_TYPES:
        raise ApiError(INVALID_REQUEST, f"there are no resources of type {resource.type}")


def _check_names(names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ApiError(INVALID_REQUEST, f"the request names {name} twice")


def _check_not_null(names: Iterable[str]) -> None:
    refused = ", ".join(names)
    if refused:
        raise ApiError(INVALID_REQUEST, f"no value is given for {refused}")
