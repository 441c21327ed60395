"""What a client knows of leaders: newer news replaces older, and never the other way round."""

from __future__ import annotations

import pytest

from barnabas.client.cluster.metadata import Broker, ClusterMetadata
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.wire.messages.metadata import MetadataResponse

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def told(leader: int, epoch: int, topic_id: Uuid = ONE) -> MetadataResponse:
    part = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
    topic = MetadataResponse.MetadataResponseTopic(name="t", topic_id=topic_id, partitions=[part])
    broker = MetadataResponse.MetadataResponseBroker(node_id=leader, host="h", port=1)
    return MetadataResponse(brokers=[broker], topics=[topic], controller_id=leader, cluster_id="c")


def test_a_newer_leader_replaces_an_older_one() -> None:
    metadata = ClusterMetadata().updated(told(1, 5)).updated(told(2, 6))
    assert metadata.topics["t"].partitions[0].leader == 2


def test_a_broker_that_lags_behind_does_not_bring_an_old_leader_back() -> None:
    metadata = ClusterMetadata().updated(told(2, 6)).updated(told(1, 5))
    assert metadata.topics["t"].partitions[0].leader == 2


def test_a_topic_made_anew_starts_its_epochs_again() -> None:
    metadata = ClusterMetadata().updated(told(2, 6)).updated(told(1, 0, TWO))
    assert metadata.topics["t"].partitions[0].leader == 1
    assert metadata.topic_name(TWO) == "t"
    assert metadata.topic_name(ONE) is None


def test_topics_that_an_answer_does_not_speak_of_stay() -> None:
    metadata = ClusterMetadata().updated(told(1, 1)).updated(MetadataResponse())
    assert "t" in metadata.topics
    assert "t" not in metadata.without("t").topics


def test_a_leader_that_a_broker_names_is_known_with_its_address() -> None:
    metadata = ClusterMetadata().updated(told(1, 5)).led_by({TopicPartition("t", 0): (7, 6)}, [Broker(7, "new", 9)])
    assert metadata.topics["t"].partitions[0][1:3] == (7, 6)
    assert metadata.leader_epoch(TopicPartition("t", 0)) == 6
    assert metadata.brokers == {1: Broker(1, "h", 1), 7: Broker(7, "new", 9)}
    assert (metadata.controller_id, metadata.cluster_id) == (1, "c")


@pytest.mark.parametrize(
    ("place", "leader"),
    [
        (TopicPartition("t", 0), (7, 5)),
        (TopicPartition("t", 0), (7, 4)),
        (TopicPartition("t", 0), (8, 6)),
        (TopicPartition("t", 0), (-1, -1)),
        (TopicPartition("t", 1), (7, 6)),
        (TopicPartition("t", -1), (7, 6)),
        (TopicPartition("other", 0), (7, 6)),
    ],
    ids=["same epoch", "older", "nobody knows where it is", "nobody", "no such partition", "nonsense", "no such topic"],
)
def test_a_named_leader_that_is_no_news_or_of_no_use_changes_nothing(
    place: TopicPartition, leader: tuple[int, int]
) -> None:
    metadata = ClusterMetadata().updated(told(1, 5))
    assert metadata.led_by({place: leader}, [Broker(7, "new", 9)]) is metadata
