"""DescribeConfigs: the settings of topics, brokers and groups, with their sources and texts; levels of loggers.

Versions: 1–4.
Behaviour: a broker describes itself and, under the empty name, what is set for all brokers. Sensitive values are null.
Differs from Kafka: resources of other types are answered with INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from barnabas.broker.access import config_permissions, permissions
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.broker.settings.described import (
    Described,
    describe_all_brokers,
    describe_broker,
    describe_group,
    describe_topic,
)
from barnabas.broker.settings.own import describe_levels
from barnabas.metadata.configs_image import ResourceType
from barnabas.metadata.topic_names import reason_invalid
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

Row: TypeAlias = DescribeConfigsResponse.DescribeConfigsResourceResult


def handle(request: Request, message: DescribeConfigsRequest) -> DescribeConfigsResponse:
    response = DescribeConfigsResponse()
    for resource in message.resources:
        result = DescribeConfigsResponse.DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        response.results.append(result)
        try:
            result.configs = [_row(item, message) for item in _describe(request, resource)]
        except ApiError as error:
            result.error_code, result.error_message = error.error.code, error.message
    return response


def _describe(request: Request, resource: DescribeConfigsRequest.DescribeConfigsResource) -> Iterable[Described]:
    broker, name, keys = request.broker, resource.resource_name, resource.configuration_keys
    names = set(keys) if keys else None  # no keys, or an empty list of them: all settings
    if resource.resource_type == ResourceType.TOPIC:
        if reason_invalid(name):
            raise ApiError(errors.INVALID_TOPIC_EXCEPTION, reason_invalid(name))
        if name not in broker.image.topics.by_name:
            raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        return describe_topic(broker.image, name, broker.settings, names)
    if resource.resource_type == ResourceType.BROKER:
        if name == "":
            return describe_all_brokers(broker.image, names)
        if name != str(broker.broker_id):
            raise ApiError(errors.INVALID_REQUEST, f"this is broker {broker.broker_id}: ask {name!r} itself")
        return describe_broker(broker.image, broker.settings, names)
    if resource.resource_type == ResourceType.GROUP:
        if not name:
            raise ApiError(errors.INVALID_REQUEST, "a group has a name")
        return describe_group(broker.image, name, broker.settings, names)
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        return [row for row in describe_levels(broker, name) if names is None or row.setting.name in names]
    raise ApiError(errors.INVALID_REQUEST, f"resources of type {resource.resource_type} have no settings here")


def _row(item: Described, message: DescribeConfigsRequest) -> Row:
    return Row(
        name=item.setting.name,
        value=item.value,
        read_only=item.is_read_only,
        config_source=item.source,
        is_sensitive=item.setting.sensitive,
        synonyms=[
            DescribeConfigsResponse.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in item.synonyms
        ]
        if message.include_synonyms
        else [],
        config_type=item.setting.kind.value,
        documentation=item.setting.doc if message.include_documentation else None,
    )


def _needs(request: GuardedRequest, message: DescribeConfigsRequest) -> Message | None:
    """DESCRIBE_CONFIGS on each resource."""
    found = [(row, config_permissions.denial(request, Operation.DESCRIBE_CONFIGS, row)) for row in message.resources]
    refused = [
        DescribeConfigsResponse.DescribeConfigsResult(
            error_code=error.code,
            error_message=error.text,
            resource_type=row.resource_type,
            resource_name=row.resource_name,
        )
        for row, error in found
        if error is not None
    ]
    allowed = [row for row, error in found if error is None]
    return permissions.split(request, message, "resources", allowed, refused, DescribeConfigsResponse, "results")


API: Final = Api(ApiKey.DESCRIBE_CONFIGS, handle, at=CLIENT, portions=(Portions("resources", "results"),), needs=_needs)
