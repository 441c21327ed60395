"""The rules for making, removing, changing and looking at topics, groups' offsets and settings that fit no table.

They see to it that what a client may not describe does not exist for it: neither in lists nor in errors.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.access.authorize_rows import parted, split, topic_name
from barnabas.broker.access.guarded_request import ERRORS, GuardedRequest
from barnabas.broker.handlers import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
)
from barnabas.coordinator.groups.offset_protocol import partition_errors
from barnabas.metadata.configs_image import ResourceType as ConfigType
from barnabas.metadata.topic_names import is_internal
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import ZERO_UUID
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.wire.messages.describe_configs import DescribeConfigsResponse
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchResponse

GROUPS_SINCE: Final = 8  # OffsetFetch
DENIED: Final = ApiError(errors.TOPIC_AUTHORIZATION_FAILED)
_CONFIG_KINDS: Final = {
    ConfigType.TOPIC: ResourceType.TOPIC,
    ConfigType.BROKER: ResourceType.CLUSTER,
    ConfigType.BROKER_LOGGER: ResourceType.CLUSTER,
    ConfigType.CLIENT_METRICS: ResourceType.CLUSTER,
    ConfigType.GROUP: ResourceType.GROUP,
}


def metadata(request: GuardedRequest, message: Any) -> Message | None:
    if message.topics is None or (request.version == 0 and not message.topics):
        request.when_answered(lambda answer: _keep_described(request, answer))
        return None
    allowed, refused = [], []
    for row in message.topics:
        name = topic_name(row, request.image)
        if name is None or (_may_describe(request, name) and _may_have(request, message, name)):
            allowed.append(row)
        elif row.topic_id != ZERO_UUID:
            refused.append(_metadata_row(name=None, topic_id=row.topic_id))
        else:
            refused.append(_metadata_row(name=name, is_internal=is_internal(name)))
    is_emptied = not allowed and bool(refused)
    message.topics = allowed

    def amend(answer: MetadataResponse) -> None:
        # In version 0 nothing left to ask for reads as everything.
        answer.topics = refused if is_emptied else answer.topics + refused

    request.when_answered(amend)
    return None


def _metadata_row(**values: Any) -> MetadataResponse.MetadataResponseTopic:
    return MetadataResponse.MetadataResponseTopic(error_code=errors.TOPIC_AUTHORIZATION_FAILED.code, **values)


def _keep_described(request: GuardedRequest, answer: Any) -> None:
    answer.topics = [row for row in answer.topics if _may_describe(request, row.name)]


def _may_describe(request: GuardedRequest, name: str) -> bool:
    return request.asker.may(Operation.DESCRIBE, ResourceType.TOPIC, name)


def _may_have(request: GuardedRequest, message: Any, name: str) -> bool:
    """Whether a topic is there already, or need not or may be made."""
    if name in request.image.topics.by_name or not message.allow_auto_topic_creation:
        return True
    return not request.broker.settings.auto_create_topics_enable or _may_create(request, name)


def _may_create(request: GuardedRequest, name: str) -> bool:
    return request.asker.may_one_of(
        (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME), (Operation.CREATE, ResourceType.TOPIC, name)
    )


def create(request: GuardedRequest, message: CreateTopicsRequest) -> Message | None:
    allowed, denied = parted(message.topics, lambda topic: _may_create(request, topic.name))
    refused = create_topics.refuse(CreateTopicsRequest(topics=denied), DENIED).topics
    return split(request, message, "topics", allowed, refused, CreateTopicsResponse, "topics")


def delete(request: GuardedRequest, message: DeleteTopicsRequest) -> Message | None:
    def may_delete(name: str | None) -> bool:
        return name is None or request.asker.may(Operation.DELETE, ResourceType.TOPIC, name)

    message.topic_names, names = parted(message.topic_names, may_delete)
    message.topics, rows = parted(message.topics, lambda row: may_delete(topic_name(row, request.image)))
    refused = delete_topics.refuse(DeleteTopicsRequest(topic_names=names, topics=rows), DENIED).responses
    if not refused:
        return None
    if not message.topics and not message.topic_names:
        return DeleteTopicsResponse(responses=refused)
    request.when_answered(lambda answer: answer.responses.extend(refused))
    return None


def grow(request: GuardedRequest, message: CreatePartitionsRequest) -> Message | None:
    asker = request.asker
    allowed, denied = parted(message.topics, lambda row: asker.may(Operation.ALTER, ResourceType.TOPIC, row.name))
    refused = create_partitions.refuse(CreatePartitionsRequest(topics=denied), DENIED).results
    return split(request, message, "topics", allowed, refused, CreatePartitionsResponse, "results")


def describe_partitions(request: GuardedRequest, message: DescribeTopicPartitionsRequest) -> Message | None:
    names = sorted({row.name for row in message.topics} or set(request.image.topics.by_name))
    allowed = [name for name in names if _may_describe(request, name)]
    row = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    refused = [
        row(error_code=errors.TOPIC_AUTHORIZATION_FAILED.code, name=name)
        for name in (names if message.topics else ())
        if name not in allowed
    ]
    if not allowed:
        return DescribeTopicPartitionsResponse(topics=refused)
    message.topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in allowed]
    request.when_answered(lambda answer: answer.topics.extend(refused))
    return None


# --- settings ---------------------------------------------------------------------------------------------------------


def _may_settings(request: GuardedRequest, operation: Operation, row: Any) -> errors.WireError | None:
    """None, or the error with which a resource is refused."""
    kind = _CONFIG_KINDS.get(row.resource_type)
    if kind is None:
        return None  # nothing has such settings: the handler says so
    name = CLUSTER_NAME if kind is ResourceType.CLUSTER else row.resource_name
    return None if request.asker.may(operation, kind, name) else ERRORS[kind]


def describe_settings(request: GuardedRequest, message: Any) -> Message | None:
    found = [(row, _may_settings(request, Operation.DESCRIBE_CONFIGS, row)) for row in message.resources]
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
    return split(request, message, "resources", allowed, refused, DescribeConfigsResponse, "results")


def alter_settings(
    request: GuardedRequest, message: AlterConfigsRequest | IncrementalAlterConfigsRequest
) -> Message | None:
    found = [(row, _may_settings(request, Operation.ALTER_CONFIGS, row)) for row in message.resources]
    refused: list[Any] = []
    for row, error in found:
        if error is None:
            continue
        if isinstance(row, AlterConfigsRequest.AlterConfigsResource):
            refused += alter_configs.refuse(AlterConfigsRequest(resources=[row]), ApiError(error)).responses
        else:
            only = IncrementalAlterConfigsRequest(resources=[row])
            refused += incremental_alter_configs.refuse(only, ApiError(error)).responses
    allowed = [row for row, error in found if error is None]
    response: type[Message] = IncrementalAlterConfigsResponse
    if isinstance(message, AlterConfigsRequest):
        response = AlterConfigsResponse
    return split(request, message, "resources", allowed, refused, response, "responses")


# --- offsets ----------------------------------------------------------------------------------------------------------


def offset_fetch(request: GuardedRequest, message: Any) -> Message | None:
    """A group that may not be described is refused; of others, topics that may not be are."""
    if request.version < GROUPS_SINCE:
        return _fetch_single(request, message)
    response = OffsetFetchResponse.OffsetFetchResponseGroup
    asker = request.asker
    message.groups, denied = parted(
        message.groups, lambda group: asker.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
    )
    code = errors.GROUP_AUTHORIZATION_FAILED.code
    refused = [response(group_id=group.group_id, error_code=code) for group in denied]
    hidden = {}
    for group in message.groups:
        if group.topics is not None:
            group.topics, hidden[group.group_id] = parted(group.topics, lambda row: _may_see(request, row))

    def amend(answer: OffsetFetchResponse) -> None:
        for group in answer.groups:
            group.topics = [row for row in group.topics if _may_see(request, row)]
            group.topics += partition_errors(hidden.get(group.group_id, ()), errors.TOPIC_AUTHORIZATION_FAILED)
        answer.groups += refused

    request.when_answered(amend)
    return None


def _fetch_single(request: GuardedRequest, message: Any) -> Message | None:
    part = OffsetFetchResponse.OffsetFetchResponsePartition
    is_allowed = request.asker.may(Operation.DESCRIBE, ResourceType.GROUP, message.group_id)
    error = errors.TOPIC_AUTHORIZATION_FAILED if is_allowed else errors.GROUP_AUTHORIZATION_FAILED
    allowed, denied = parted(message.topics or (), lambda row: is_allowed and _may_see(request, row))
    refused = [
        OffsetFetchResponse.OffsetFetchResponseTopic(
            name=row.name,
            partitions=[
                part(partition_index=index, committed_offset=-1, metadata="", error_code=error.code)
                for index in row.partition_indexes
            ],
        )
        for row in denied
    ]
    if not is_allowed:
        return OffsetFetchResponse(error_code=error.code, topics=refused)
    if message.topics is not None:
        message.topics = allowed

    def amend(answer: OffsetFetchResponse) -> None:
        answer.topics = [row for row in answer.topics if _may_see(request, row)] + refused

    request.when_answered(amend)
    return None


def _may_see(request: GuardedRequest, row: Any) -> bool:
    name = topic_name(row, request.image)
    return name is None or _may_describe(request, name)
