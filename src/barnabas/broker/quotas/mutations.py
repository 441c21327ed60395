"""Topics that may not be made, grown or removed just now, because somebody has changed too much already.

Each partition made or removed is a token. Clients that know the error are refused topic by topic while there is none;
older ones are served and wait afterwards. Asked by the dispatcher where such quotas are set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from barnabas.broker.access.permissions import split
from barnabas.broker.handlers import create_partitions, create_topics, delete_topics
from barnabas.broker.quotas.metering import Meter
from barnabas.broker.quotas.quotas import Limit
from barnabas.broker.requests.amended_request import AmendedRequest
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

T = TypeVar("T")

# From these versions on clients know what it means to be refused for a quota.
STRICT_SINCE: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
EXCEEDED: Final = ApiError(errors.THROTTLING_QUOTA_EXCEEDED)


def check(request: AmendedRequest, meter: Meter, message: Any) -> Message | None:
    """None: the handler may go on with what is left of the request. A message: the answer."""
    limit = request.broker.quotas.mutation.limit(meter.user, meter.client_id)
    if limit is None:
        return None
    purse = _Purse(request, meter, limit)
    if isinstance(message, CreateTopicsRequest):
        allowed, denied = purse.parted(message.topics, lambda topic: _created(request, topic))
        refused = create_topics.refuse(CreateTopicsRequest(topics=denied), EXCEEDED).topics
        return split(request, message, "topics", allowed, refused, CreateTopicsResponse, "topics")
    if isinstance(message, CreatePartitionsRequest):
        grown, left = purse.parted(message.topics, lambda topic: _added(request, topic))
        rows = create_partitions.refuse(CreatePartitionsRequest(topics=left), EXCEEDED).results
        return split(request, message, "topics", grown, rows, CreatePartitionsResponse, "results")
    assert isinstance(message, DeleteTopicsRequest)
    return _check_deleted(request, purse, message)


def _check_deleted(request: AmendedRequest, purse: _Purse, message: DeleteTopicsRequest) -> Message | None:
    image = request.broker.image.topics

    def count(name: str | None, topic_id: object = None) -> int:
        found = image.by_name.get(name) if name is not None else image.by_id.get(topic_id)  # type: ignore[call-overload]
        return 0 if found is None else len(found.partitions)

    message.topic_names, names = purse.parted(message.topic_names, count)
    message.topics, rows = purse.parted(message.topics, lambda row: count(row.name, row.topic_id))
    refused = delete_topics.refuse(DeleteTopicsRequest(topic_names=names, topics=rows), EXCEEDED).responses
    if not refused:
        return None
    if not message.topics and not message.topic_names:
        return DeleteTopicsResponse(responses=refused)
    request.when_answered(lambda answer: answer.responses.extend(refused))
    return None


def _created(request: AmendedRequest, topic: CreateTopicsRequest.CreatableTopic) -> int:
    if topic.name in request.broker.image.topics.by_name:
        return 0
    if topic.assignments:
        return len(topic.assignments)
    return topic.num_partitions if topic.num_partitions > 0 else request.broker.settings.num_partitions


def _added(request: AmendedRequest, topic: CreatePartitionsRequest.CreatePartitionsTopic) -> int:
    found = request.broker.image.topics.by_name.get(topic.name)
    return 0 if found is None else max(0, topic.count - len(found.partitions))


class _Purse:
    """The tokens of one client."""

    def __init__(self, request: AmendedRequest, meter: Meter, limit: Limit) -> None:
        self._kind = request.broker.quotas.mutation
        self._bucket = self._kind.used(limit)
        self._limit = limit.value
        self._now_ms = request.broker.world.clock.monotonic_ms()
        self._is_strict = request.version >= STRICT_SINCE[ApiKey(request.header.api_key)]
        self._meter = meter

    def parted(self, rows: Iterable[T], count: Callable[[T], int]) -> tuple[list[T], list[T]]:
        """Those for which there are tokens, and those for which there are none."""
        allowed: list[T] = []
        refused: list[T] = []
        for row in rows:
            throttle_ms = self._bucket.throttle_ms(now_ms=self._now_ms, limit=self._limit)
            if throttle_ms and self._is_strict:
                self._wait(throttle_ms)
                refused.append(row)
                continue
            self._bucket.take(count(row), now_ms=self._now_ms, limit=self._limit)
            if not self._is_strict:
                self._wait(self._bucket.throttle_ms(now_ms=self._now_ms, limit=self._limit))
            allowed.append(row)
        return allowed, refused

    def _wait(self, throttle_ms: int) -> None:
        if throttle_ms:
            self._meter.mutation_ms = max(self._meter.mutation_ms, throttle_ms)
            self._kind.throttled_count += 1
