"""Metadata: the brokers of the cluster and the topics that a client asks for.

Versions: 0–13.
Behaviour: null topics means all (v1+; v0 says so with an empty list), an empty list means none. An unknown topic is
made if the client and ``auto.create.topics.enable`` allow it; until its leader is known here the answer says so and
the client asks again. Brokers are listed under the listener that the request came in on. Topics are named by id from
version 12 on; before it, a request that names one so is refused as INVALID_REQUEST, topic by topic.
Differs from Kafka: a topic that is created on demand is answered once it exists; Kafka answers
UNKNOWN_TOPIC_OR_PARTITION at once, creates the topic behind it, and the client must retry.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.broker.access import permissions
from barnabas.broker.access.authorized_operations import authorized_operations, cluster_operations
from barnabas.broker.access.guarded_request import GuardedRequest
from barnabas.broker.controller.auto_create import create_missing
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.topic_names import is_internal, reason_invalid
from barnabas.metadata.topics_image import TopicImage
from barnabas.model import errors
from barnabas.model.ids import NO_BROKER, ZERO_UUID
from barnabas.security.acl import ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

Row: TypeAlias = MetadataResponse.MetadataResponseTopic
PartitionRow: TypeAlias = MetadataResponse.MetadataResponsePartition
Steps: TypeAlias = Generator[None, None, MetadataResponse]

PARTITIONS_PER_STEP: Final = 100
TOPIC_IDS_SINCE: Final = 12  # 10 and 11 have the field, but Kafka never understood it there
LISTENER_ERRORS_SINCE: Final = 6  # before, a leader that is not told on the client's listener is one that is not there


class Nodes(NamedTuple):
    """The brokers, as a client on one listener may know them."""

    alive: set[int]
    hidden: set[int]  # there, but not to be reached by this listener


def handle(
    request: Request, message: MetadataRequest
) -> MetadataResponse | Steps | Coroutine[Any, Any, MetadataResponse]:
    if request.version < TOPIC_IDS_SINCE and _is_by_id(message):
        return _refused(message)
    missing = _missing(request, message)
    if missing:
        return _create_and_answer(request, message, missing)
    return _answer(request, message, {})


async def _create_and_answer(request: Request, message: MetadataRequest, missing: list[str]) -> MetadataResponse:
    refused = await create_missing(request.broker, missing)
    return await request.broker.turns.run(_answer(request, message, refused))


def _is_by_id(message: MetadataRequest) -> bool:
    return any(topic.name is None or topic.topic_id != ZERO_UUID for topic in message.topics or ())


def _refused(message: MetadataRequest) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            Row(error_code=errors.INVALID_REQUEST.code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in message.topics or ()
        ]
    )


def _missing(request: Request, message: MetadataRequest) -> list[str]:
    """The topics that are to be made because someone asked for them."""
    if not message.topics or not message.allow_auto_topic_creation:
        return []
    if not request.broker.settings.auto_create_topics_enable:
        return []
    by_name = request.broker.image.topics.by_name
    names = {topic.name for topic in message.topics if topic.name and topic.topic_id == ZERO_UUID}
    return sorted(name for name in names if name not in by_name and reason_invalid(name) is None)


def _answer(request: Request, message: MetadataRequest, refused: dict[str, errors.WireError]) -> Steps:
    broker = request.broker
    image = broker.image
    response = MetadataResponse(cluster_id=broker.cluster_id, controller_id=_controller_id(request))
    nodes = Nodes(set(), set())
    for node_id in sorted(image.brokers):
        found = broker.endpoint_of(node_id, request.connection)
        if image.brokers[node_id].is_fenced:
            continue
        if found is None:
            nodes.hidden.add(node_id)
            continue
        host, port, rack = found
        nodes.alive.add(node_id)
        response.brokers.append(
            MetadataResponse.MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
        )
    if request.version < LISTENER_ERRORS_SINCE:
        nodes.hidden.clear()
    if message.topics is None or (request.version == 0 and not message.topics):
        for name in sorted(image.topics.by_name):
            if request.asker is None or request.asker.may_describe(name):
                response.topics.append((yield from _topic(image.topics.by_name[name], nodes)))
    else:
        wanted = {(topic.topic_id, topic.name): topic for topic in message.topics}  # each once
        for topic in wanted.values():
            response.topics.append((yield from _asked(request, topic, nodes, refused)))
    if message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(request)
    if message.include_topic_authorized_operations:
        for row in response.topics:
            if row.name:
                row.topic_authorized_operations = authorized_operations(request, ResourceType.TOPIC, row.name)
                yield
    return response


def _controller_id(request: Request) -> int:
    """Any broker forwards to the controller, so clients are told one that is there: this one."""
    return request.broker.broker_id


def _asked(
    request: Request, asked: MetadataRequest.MetadataRequestTopic, nodes: Nodes, refused: dict[str, errors.WireError]
) -> Generator[None, None, Row]:
    topics = request.broker.image.topics
    if asked.topic_id != ZERO_UUID:
        found = topics.by_id.get(asked.topic_id)
        if found is None:
            return Row(error_code=errors.UNKNOWN_TOPIC_ID.code, name=None, topic_id=asked.topic_id)
        return (yield from _topic(found, nodes))
    name = asked.name or ""
    known = topics.by_name.get(name)
    if known is not None:
        return (yield from _topic(known, nodes))
    error = refused.get(name)
    if error is None:
        error = errors.INVALID_TOPIC_EXCEPTION if reason_invalid(name) else errors.UNKNOWN_TOPIC_OR_PARTITION
    return Row(error_code=error.code, name=name, is_internal=is_internal(name))


def _topic(topic: TopicImage, nodes: Nodes) -> Generator[None, None, Row]:
    row = Row(name=topic.name, topic_id=topic.id, is_internal=is_internal(topic.name))
    for start in range(0, len(topic.partitions), PARTITIONS_PER_STEP):
        some = topic.partitions[start : start + PARTITIONS_PER_STEP]
        row.partitions += [_partition(index, partition, nodes) for index, partition in enumerate(some, start)]
        yield
    return row


def _partition(index: int, partition: PartitionImage, nodes: Nodes) -> PartitionRow:
    has_leader = partition.leader in nodes.alive
    missing = errors.LISTENER_NOT_FOUND if partition.leader in nodes.hidden else errors.LEADER_NOT_AVAILABLE
    return PartitionRow(
        error_code=0 if has_leader else missing.code,
        partition_index=index,
        leader_id=partition.leader if has_leader else NO_BROKER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[replica for replica in partition.replicas if replica not in nodes.alive],
    )


def _needs(request: GuardedRequest, message: MetadataRequest) -> None:
    """DESCRIBE on each topic, and CREATE if the request would create it. Other topics are denied or left out."""
    if message.topics is None or (request.version == 0 and not message.topics):
        return  # topics that may not be described are left out of the response
    if request.version < TOPIC_IDS_SINCE and _is_by_id(message):
        return  # the handler refuses the whole request
    allowed, refused = [], []
    for row in {(row.topic_id, row.name): row for row in message.topics}.values():
        name = permissions.topic_name(row, request.image)
        if name is None or (permissions.may_describe_topic(request, name) and _may_have(request, message, name)):
            allowed.append(row)
        elif row.topic_id != ZERO_UUID:
            refused.append(_denied(name=None, topic_id=row.topic_id))
        else:
            refused.append(_denied(name=name, is_internal=is_internal(name)))
    is_emptied = not allowed and bool(refused)
    message.topics = allowed

    def amend(answer: MetadataResponse) -> None:
        # In version 0 an empty list of topics means all topics.
        answer.topics = refused if is_emptied else answer.topics + refused

    request.when_answered(amend)


def _denied(**values: Any) -> Row:
    return Row(error_code=errors.TOPIC_AUTHORIZATION_FAILED.code, **values)


def _may_have(request: GuardedRequest, message: MetadataRequest, name: str) -> bool:
    """Whether a topic exists, or the request does not create it, or may create it."""
    if name in request.image.topics.by_name or not message.allow_auto_topic_creation:
        return True
    return not request.broker.settings.auto_create_topics_enable or permissions.may_create_topic(request, name)


API: Final = Api(ApiKey.METADATA, handle, at=CLIENT, portions=(Portions("topics", "topics"),), needs=_needs)
