from __future__ import annotations

from barnabas.client.metadata import ClusterMetadata
from barnabas.model.ids import Uuid
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
