"""DeleteTopics: by name or by id, each on its own.

Which topics the caller may delete has been settled by the handler, which passes only those on. The files of a deleted
topic are the business of the brokers that hold them.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, TypeAlias

from barnabas.metadata.decision import Decision, Facts, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.records import RemoveTopicRecord
from barnabas.model.errors import (
    INVALID_REQUEST,
    TOPIC_DELETION_DISABLED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    ApiError,
)
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

TopicResult: TypeAlias = DeleteTopicsResponse.DeletableTopicResult
_Wanted: TypeAlias = tuple[str | None, Uuid]
_TWICE: Final = "the request names the topic twice"


def delete_topics(image: ClusterImage, request: DeleteTopicsRequest, facts: Facts) -> Decision[DeleteTopicsResponse]:
    """TOPIC_DELETION_DISABLED for the whole request where delete.topic.enable is off."""
    if not facts.delete_topic_enable:
        raise ApiError(TOPIC_DELETION_DISABLED)
    wanted: list[_Wanted] = [(name, ZERO_UUID) for name in request.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in request.topics]
    counts = Counter(wanted)
    records: list[Message] = []
    results: list[TopicResult] = []
    gone: set[Uuid] = set()
    for name, topic_id in counts:
        try:
            _check(counts[name, topic_id], name, topic_id)
            found_name, found_id = _find(image, name, topic_id)
            _check_not_gone(found_id in gone)
            check_size(len(records) + 1)
            gone.add(found_id)
            records.append(RemoveTopicRecord(topic_id=found_id))
            results.append(TopicResult(name=found_name, topic_id=found_id))
        except ApiError as error:
            results.append(
                TopicResult(name=name, topic_id=topic_id, error_code=error.error.code, error_message=error.message)
            )
    return Decision(records, DeleteTopicsResponse(responses=results))


def _check(count: int, name: str | None, topic_id: Uuid) -> None:
    if name is None and topic_id == ZERO_UUID:
        raise ApiError(INVALID_REQUEST, "the request gives neither the name of the topic nor its id")
    if name is not None and topic_id != ZERO_UUID:
        raise ApiError(INVALID_REQUEST, "the request gives both the name of the topic and its id; one is enough")
    if count > 1:
        raise ApiError(INVALID_REQUEST, _TWICE)


def _check_not_gone(is_gone: bool) -> None:
    if is_gone:
        raise ApiError(INVALID_REQUEST, _TWICE)


def _find(image: ClusterImage, name: str | None, topic_id: Uuid) -> tuple[str, Uuid]:
    topic = image.topic_of_id(topic_id) if name is None else image.topic(name)
    if topic is None:
        raise ApiError(UNKNOWN_TOPIC_ID if name is None else UNKNOWN_TOPIC_OR_PARTITION)
    return topic.name, topic.id
