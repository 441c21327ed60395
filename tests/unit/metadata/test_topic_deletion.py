"""DeleteTopics, by name and by id."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.metadata.topic_deletion import delete_topics
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import ZERO_UUID
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest

State = DeleteTopicsRequest.DeleteTopicState


def delete(cluster: Any, *topics: Any, names: tuple[str, ...] = ()) -> dict[Any, int]:
    request = DeleteTopicsRequest(topics=list(topics), topic_names=list(names))
    decision = delete_topics(cluster.image, request, cluster.facts)
    cluster.decided(decision)
    return {(result.name, result.topic_id): result.error_code for result in decision.response.responses}


def test_topics_go_by_name_and_by_id(cluster: Any) -> None:
    first, second, third = (cluster.create(name, [0]) for name in "abc")
    assert delete(cluster, State(name="a"), State(topic_id=second)) == {("a", first): 0, ("b", second): 0}
    assert delete(cluster, names=("c",)) == {("c", third): 0}
    assert len(cluster.image.topics) == 0


def test_what_does_not_exist_cannot_go(cluster: Any) -> None:
    unknown = cluster.uuid(999)
    assert delete(cluster, State(name="a"), State(topic_id=unknown)) == {
        ("a", ZERO_UUID): errors.UNKNOWN_TOPIC_OR_PARTITION.code,
        (None, unknown): errors.UNKNOWN_TOPIC_ID.code,
    }


def test_a_request_must_name_each_topic_once_and_in_one_way(cluster: Any) -> None:
    topic_id = cluster.create("a", [0])
    other_id = cluster.create("b", [0])
    invalid = errors.INVALID_REQUEST.code
    assert delete(cluster, State()) == {(None, ZERO_UUID): invalid}
    assert delete(cluster, State(name="a", topic_id=topic_id)) == {("a", topic_id): invalid}
    assert delete(cluster, State(name="a"), State(name="a")) == {("a", ZERO_UUID): invalid}
    assert delete(cluster, State(topic_id=topic_id), State(topic_id=topic_id)) == {(None, topic_id): invalid}
    assert set(cluster.image.topics.by_name) == {"a", "b"}
    answers = delete(cluster, State(topic_id=other_id), State(name="b"))
    assert answers == {("b", other_id): 0, ("b", ZERO_UUID): invalid}


def test_deleting_can_be_switched_off(cluster: Any) -> None:
    facts = replace(cluster.facts, delete_topic_enable=False)
    with pytest.raises(ApiError) as refused:
        delete_topics(cluster.image, DeleteTopicsRequest(topic_names=["a"]), facts)
    assert refused.value.error is errors.TOPIC_DELETION_DISABLED
