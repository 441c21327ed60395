"""CreateTopics: each topic succeeds or fails on its own, and all that succeed do so at once.

Who may create what has been settled by the handler. Deleting is in ``topic_deletion``, more partitions for a topic in
``partitions``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from typing import TypeAlias

from barnabas.metadata import config_checks, topic_names
from barnabas.metadata.assignment import assigned_partition, check_assignment, place_partitions
from barnabas.metadata.configs import config_records
from barnabas.metadata.configs_image import ConfigResource, ResourceType
from barnabas.metadata.decision import PARTITIONS_PER_REQUEST_MAX, Decision, Facts, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.records import TopicRecord
from barnabas.model.errors import (
    INVALID_CONFIG,
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    POLICY_VIOLATION,
    TOPIC_ALREADY_EXISTS,
    TOPIC_AUTHORIZATION_FAILED,
    ApiError,
)
from barnabas.model.ids import METADATA_TOPIC, Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

CreatableTopic: TypeAlias = CreateTopicsRequest.CreatableTopic
TopicResult: TypeAlias = CreateTopicsResponse.CreatableTopicResult
TopicConfig: TypeAlias = CreateTopicsResponse.CreatableTopicConfigs


def create_topics(
    image: ClusterImage,
    request: CreateTopicsRequest,
    facts: Facts,
    *,
    topic_ids: Iterator[Uuid],
    seed: int,
    describable: Container[str] | None = None,
) -> Decision[CreateTopicsResponse]:
    """``describable`` names the topics whose configurations the caller may see; None stands for all."""
    records: list[Message] = []
    results: list[TopicResult] = []
    # What topics with the same configurations of their own are told of all others: mostly it is one list for all.
    described: dict[tuple[tuple[str, str], ...], list[TopicConfig]] = {}
    counts = Counter(topic.name for topic in request.topics)
    is_too_much = _partition_count(request, facts) > PARTITIONS_PER_REQUEST_MAX
    for number, topic in enumerate(request.topics):
        if counts[topic.name] > 1:
            continue
        try:
            _check(image, topic.name, is_too_much=is_too_much)
            configs = _configs(image, topic, facts)
            partitions = _partitions(image, topic, facts, seed=seed + number)
            topic_id = next(topic_ids)
            topic_records = _records(image, topic.name, topic_id, partitions, configs)
            check_size(len(records) + len(topic_records))
        except ApiError as error:
            results.append(_refused(topic.name, error))
            continue
        records += topic_records
        rows = None
        if describable is None or topic.name in describable:
            own = tuple(sorted(configs.items()))
            rows = described.get(own)
            if rows is None:
                rows = described[own] = _described(image, configs, facts)
        results.append(_created(topic.name, topic_id, partitions, rows))
    duplicate = ApiError(INVALID_REQUEST, "the request names the topic twice")
    results += [_refused(name, duplicate) for name, count in counts.items() if count > 1]
    return Decision([] if request.validate_only else records, CreateTopicsResponse(topics=results))


def _records(
    image: ClusterImage, name: str, topic_id: Uuid, partitions: list[PartitionImage], configs: dict[str, str]
) -> list[Message]:
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *config_records(image, ConfigResource(ResourceType.TOPIC, name), dict(configs)),
        *(partition.record(topic_id, index) for index, partition in enumerate(partitions)),
    ]


def _refused(name: str, error: ApiError) -> TopicResult:
    return TopicResult(name=name, error_code=error.error.code, error_message=error.message)


def _described(image: ClusterImage, configs: dict[str, str], facts: Facts) -> list[TopicConfig]:
    return [
        TopicConfig(
            name=config.name,
            value=None if config.is_sensitive else config.value,
            config_source=config.source,
            is_sensitive=config.is_sensitive,
        )
        for config in facts.schema.topic_configs(image.configs, configs)
    ]


def _created(
    name: str, topic_id: Uuid, partitions: list[PartitionImage], configs: list[TopicConfig] | None
) -> TopicResult:
    """The answer; with no ``configs``, for a caller who may not see them."""
    result = TopicResult(name=name, topic_id=topic_id, error_message=None)
    if configs is None:
        result.topic_config_error_code = TOPIC_AUTHORIZATION_FAILED.code
        return result
    result.num_partitions = len(partitions)
    result.replication_factor = len(partitions[0].replicas)
    result.configs = configs
    return result


def _partition_count(request: CreateTopicsRequest, facts: Facts) -> int:
    """How many partitions are asked for, before any of them exists as an object."""
    return sum(
        len(topic.assignments) or (facts.num_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions))
        for topic in request.topics
    )


def _check(image: ClusterImage, name: str, *, is_too_much: bool) -> None:
    if is_too_much:
        raise ApiError(
            POLICY_VIOLATION,
            f"one request may create {PARTITIONS_PER_REQUEST_MAX} partitions, and this is for more: ask in parts",
        )
    if name == METADATA_TOPIC:
        raise ApiError(INVALID_REQUEST, f"{METADATA_TOPIC} is the cluster's own log, and no topic can be called so")
    if name in image.topics:
        # Many a script looks for "already exists" in the sentence and not at the code.
        raise ApiError(TOPIC_ALREADY_EXISTS, f"a topic {name!r} already exists")
    topic_names.check(name)
    if topic_names.can_collide(name):
        others = image.topics.collisions.get(topic_names.unified(name))
        if others:
            raise ApiError(
                INVALID_TOPIC_EXCEPTION, f"metrics could not tell {name!r} from {others[0]!r}, which is there already"
            )


def _configs(image: ClusterImage, topic: CreatableTopic, facts: Facts) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise ApiError(INVALID_CONFIG, f"no value is given for {', '.join(nulls)}")
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    resource = ConfigResource(ResourceType.TOPIC, topic.name)
    config_checks.check(image, facts.schema, resource, dict(configs), is_new=True)
    return configs


def _partitions(image: ClusterImage, topic: CreatableTopic, facts: Facts, *, seed: int) -> list[PartitionImage]:
    if topic.assignments:
        return _assigned(image, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise ApiError(
            INVALID_REPLICATION_FACTOR,
            f"a topic has 1 replica or more, or -1 for as many as the brokers' settings say; not "
            f"{topic.replication_factor}",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise ApiError(
            INVALID_PARTITIONS,
            f"a topic has 1 partition or more, or -1 for as many as the brokers' settings say; not "
            f"{topic.num_partitions}",
        )
    return place_partitions(
        image,
        partition_count=facts.num_partitions if topic.num_partitions == -1 else topic.num_partitions,
        replication_factor=(
            facts.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
        ),
        seed=seed,
    )


def _assigned(image: ClusterImage, topic: CreatableTopic) -> list[PartitionImage]:
    for given, what in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "number of partitions"),
    ):
        if given != -1:
            raise ApiError(INVALID_REQUEST, f"the {what} goes by the assignment: it must be -1, not {given}")
    partitions: dict[int, PartitionImage] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index, replicas = assignment.partition_index, assignment.broker_ids
        if index in partitions:
            raise ApiError(INVALID_REPLICA_ASSIGNMENT, f"partition {index} is assigned twice")
        check_assignment(image, replicas, replication_factor=replication_factor)
        replication_factor = len(replicas)
        partitions[index] = assigned_partition(image, index, replicas)
    for index in range(len(partitions)):
        if index not in partitions:
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"partitions count up from 0, and the {len(partitions)} of the assignment leave out {index}",
            )
    return [partitions[index] for index in range(len(partitions))]
