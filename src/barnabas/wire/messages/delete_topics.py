"""DeleteTopics: an administrator deletes topics.

Version 5 adds an error message, version 6 deletes by id as well as by name.
"""

from __future__ import annotations

from barnabas.model.ids import Uuid
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, int32, string, uuid


class DeleteTopicsRequest(Message, api=ApiKey.DELETE_TOPICS, versions=range(1, 7), flexible=4):
    class DeleteTopicState(Message):
        name: str | None = string(nullable=True, default=None)
        topic_id: Uuid = uuid()

    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = array(string, until=5, ignorable=True)
    timeout_ms: int = int32()


class DeleteTopicsResponse(Message, api=ApiKey.DELETE_TOPICS, versions=range(1, 7), flexible=4):
    class DeletableTopicResult(Message):
        name: str | None = string(nullable=True, nullable_since=6)
        topic_id: Uuid = uuid(since=6, ignorable=True)
        error_code: int = int16()
        error_message: str | None = string(since=5, nullable=True, default=None, ignorable=True)

    throttle_time_ms: int = int32()
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
