"""A broker that leads a partition no more names the one that does, in answers to Produce and to Fetch."""

from __future__ import annotations

import pytest

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import Broker
from barnabas.client.cluster.moved_leaders import is_leader_found, learn_leaders
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import ProduceResponse

PLACE = TopicPartition("t", 0)
Part = ProduceResponse.PartitionProduceResponse | FetchResponse.PartitionData


@pytest.fixture
def cluster() -> Cluster:
    """Knows broker 1, which leads since epoch 5."""
    cluster = Cluster(Settings(bootstrap_servers=("h:1",)))
    partition = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=5)
    cluster.metadata = cluster.metadata.updated(
        MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=1)],
            topics=[MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition])],
        )
    )
    return cluster


def produced(error: WireError) -> Part:
    leader = ProduceResponse.LeaderIdAndEpoch(leader_id=7, leader_epoch=6)
    return ProduceResponse.PartitionProduceResponse(error_code=error.code, current_leader=leader)


def fetched(error: WireError) -> Part:
    leader = FetchResponse.LeaderIdAndEpoch(leader_id=7, leader_epoch=6)
    return FetchResponse.PartitionData(error_code=error.code, current_leader=leader)


NEW = ProduceResponse.NodeEndpoint(node_id=7, host="new", port=9)


@pytest.mark.parametrize("part_of", [produced, fetched])
@pytest.mark.parametrize("error", [errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH])
def test_whoever_leads_no_more_says_who_does(cluster: Cluster, part_of: type, error: WireError) -> None:
    assert not is_leader_found(cluster, PLACE, error, asked_epoch=5)
    learn_leaders(cluster, [(PLACE, part_of(error))], [NEW])
    assert cluster.metadata.topics["t"].partitions[0].leader == 7
    assert cluster.metadata.brokers[7] == Broker(7, "new", 9)
    assert is_leader_found(cluster, PLACE, error, asked_epoch=5)
    assert not is_leader_found(cluster, PLACE, error, asked_epoch=6), "he was the one who was asked"


@pytest.mark.parametrize("part_of", [produced, fetched])
@pytest.mark.parametrize("error", [errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION, errors.KAFKA_STORAGE_ERROR])
def test_other_answers_name_no_leader(cluster: Cluster, part_of: type, error: WireError) -> None:
    before = cluster.metadata
    learn_leaders(cluster, [(PLACE, part_of(error))], [NEW])
    assert cluster.metadata is before
    assert not is_leader_found(cluster, PLACE, error, asked_epoch=4)
