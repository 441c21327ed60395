"""The cluster over the wire: its brokers, its quorum, its features, its directories, and what it speaks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from talk import Talk, batch

from barnabas.broker.requests.routes import ROUTES
from barnabas.model import errors
from barnabas.model.ids import METADATA_TOPIC, ZERO_UUID
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@pytest.fixture
def own_talk() -> Iterator[Talk]:
    with Broker() as broker, Talk(broker.bootstrap_servers) as connection:
        yield connection


# --- ApiVersions ------------------------------------------------------------------------------------------------------


def test_what_is_announced_is_what_is_served(talk: Talk) -> None:
    request = ApiVersionsRequest(client_software_name="talk", client_software_version="1")
    announced = {row.api_key: (row.min_version, row.max_version) for row in talk.ask(request, 4).api_keys}
    assert set(announced) == {int(key) for key in ROUTES}
    assert announced.pop(0) == (0, 13), "librdkafka wants Produce from 0"
    assert announced == {
        int(key): (route.versions[0], route.versions[-1]) for key, route in ROUTES.items() if int(key) != 0
    }


@pytest.mark.parametrize("software", ["", "-x", "x-", "a b", "ä", "x" * 100 + "!"])
def test_a_client_with_a_bad_name_is_told(talk: Talk, software: str) -> None:
    request = ApiVersionsRequest(client_software_name=software, client_software_version="1")
    assert talk.ask(request, 3).error_code == errors.INVALID_REQUEST.code
    request = ApiVersionsRequest(client_software_name="talk", client_software_version=software)
    assert talk.ask(request, 4).error_code == errors.INVALID_REQUEST.code


def test_old_clients_see_no_feature_that_starts_at_0(talk: Talk) -> None:
    request = ApiVersionsRequest(client_software_name="talk", client_software_version="1")
    assert all(row.min_version > 0 for row in talk.ask(request, 3).supported_features)
    finalized = {row.name: row.max_version_level for row in talk.ask(request, 3).finalized_features}
    assert finalized["metadata.version"] > 0


# --- DescribeCluster --------------------------------------------------------------------------------------------------


def test_the_cluster_is_described(talk: Talk, shared_broker: Broker) -> None:
    answer = talk.ask(DescribeClusterRequest())
    (node,) = answer.brokers
    assert answer.cluster_id == shared_broker.node.cluster_id
    assert (f"{node.host}:{node.port}", node.broker_id) == (shared_broker.bootstrap_servers, answer.controller_id)


@pytest.mark.parametrize(
    ("kind", "error"), [(2, errors.MISMATCHED_ENDPOINT_TYPE), (9, errors.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_only_brokers_are_described_here(talk: Talk, kind: int, error: errors.WireError) -> None:
    assert talk.ask(DescribeClusterRequest(endpoint_type=kind)).error_code == error.code


# --- DescribeLogDirs --------------------------------------------------------------------------------------------------


def test_directories_and_what_lies_in_them(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t", 2)
        talk.produce("t", batch(b"x" * 1000))
        (everything,) = talk.ask(DescribeLogDirsRequest(topics=None)).results
        assert (everything.error_code, everything.log_dir) == (0, str(tmp_path))
        assert 0 < everything.usable_bytes <= everything.total_bytes
        sizes = {
            (topic.name, row.partition_index): row.partition_size
            for topic in everything.topics
            for row in topic.partitions
        }
        assert sizes["t", 0] > 1000
        assert sizes["t", 1] == 0
        named = [DescribeLogDirsRequest.DescribableLogDirTopic(topic="t", partitions=[1])]
        (some,) = talk.ask(DescribeLogDirsRequest(topics=named)).results
        assert [[row.partition_index for row in topic.partitions] for topic in some.topics] == [[1]]
        (none,) = talk.ask(DescribeLogDirsRequest(topics=[])).results
        assert none.topics == []


# --- DescribeQuorum ---------------------------------------------------------------------------------------------------


def quorum(talk: Talk, topic: str, partition: int, version: int = 2) -> object:
    topics = [
        DescribeQuorumRequest.TopicData(
            topic_name=topic, partitions=[DescribeQuorumRequest.PartitionData(partition_index=partition)]
        )
    ]
    return talk.ask(DescribeQuorumRequest(topics=topics), version).topics[0].partitions[0]


def test_a_quorum_of_one_leads_itself(talk: Talk) -> None:
    row = quorum(talk, METADATA_TOPIC, 0)
    (voter,) = row.current_voters  # type: ignore[attr-defined]
    assert (row.leader_id, voter.replica_id) == (1, 1)  # type: ignore[attr-defined]
    assert row.high_watermark == voter.log_end_offset > 0  # type: ignore[attr-defined]
    assert voter.replica_directory_id != ZERO_UUID
    assert voter.last_caught_up_timestamp != 0


def test_other_topics_have_no_quorum(talk: Talk) -> None:
    for topic, partition in (("t", 0), (METADATA_TOPIC, 1), ("", -1)):
        row = quorum(talk, topic, partition)
        assert row.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code  # type: ignore[attr-defined]


# --- UpdateFeatures ---------------------------------------------------------------------------------------------------


def update(talk: Talk, feature: str, level: int, kind: int, **more: bool) -> int:
    updates = [UpdateFeaturesRequest.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)]
    code: int = talk.ask(UpdateFeaturesRequest(timeout_ms=1000, feature_updates=updates, **more)).error_code
    return code


def level_of(talk: Talk, feature: str) -> int:
    request = ApiVersionsRequest(client_software_name="talk", client_software_version="1")
    found = {row.name: row.max_version_level for row in talk.ask(request, 4).finalized_features}
    return found.get(feature, 0)


def test_a_feature_goes_down_and_up(own_talk: Talk) -> None:
    feature = "eligible.leader.replicas.version"
    assert level_of(own_talk, feature) == 1
    refused = errors.INVALID_UPDATE_VERSION.code
    assert update(own_talk, feature, 0, UPGRADE) == refused
    assert update(own_talk, feature, 0, SAFE_DOWNGRADE, validate_only=True) == 0
    assert level_of(own_talk, feature) == 1
    assert update(own_talk, feature, 0, SAFE_DOWNGRADE) == 0
    assert level_of(own_talk, feature) == 0
    assert update(own_talk, feature, 1, UPGRADE) == 0
    assert level_of(own_talk, feature) == 1


@pytest.mark.parametrize(
    ("feature", "level", "kind"),
    [
        ("no.such.feature", 1, UPGRADE),
        ("metadata.version", 32767, UPGRADE),
        ("metadata.version", -1, UNSAFE_DOWNGRADE),
        ("eligible.leader.replicas.version", 1, 0),
        ("eligible.leader.replicas.version", 1, 99),
    ],
)
def test_a_level_that_cannot_be_is_refused(talk: Talk, feature: str, level: int, kind: int) -> None:
    assert update(talk, feature, level, kind) in (
        errors.INVALID_UPDATE_VERSION.code,
        errors.INVALID_REQUEST.code,
        errors.FEATURE_UPDATE_FAILED.code,
    )
