"""Levels of features: what a new cluster starts with, and how they change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.metadata import records as r
from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, update_features
from barnabas.metadata.features_image import finalized
from barnabas.metadata.image import EMPTY
from barnabas.model import errors
from barnabas.wire.message import encode
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

ELR = "eligible.leader.replicas.version"


def update(cluster: Any, *updates: tuple[str, int, int], validate_only: bool = False, facts: Any = None) -> Any:
    request = UpdateFeaturesRequest(
        feature_updates=[
            UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        validate_only=validate_only,
    )
    decision = update_features(cluster.image, request, facts or cluster.facts)
    for version in UpdateFeaturesResponse.versions:
        encode(decision.response, version)
    cluster.decided(decision)
    return decision.response


def test_a_new_cluster_starts_at_the_levels_of_its_release() -> None:
    records = bootstrap_records()
    assert isinstance(records[0], r.BeginTransactionRecord)
    assert records[1] == r.FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert isinstance(records[-1], r.EndTransactionRecord)
    image = EMPTY.apply_all(records, base_offset=0, epoch=1)
    assert dict(image.features) == {
        "metadata.version": 30,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
        "share.version": 1,
    }
    assert finalized(image.features)["kraft.version"] == 1
    assert image.has_elr
    assert image.configs.of_cluster()["min.insync.replicas"] == "1"
    assert image.transaction_base is None


def test_a_cluster_without_eligible_leaders_needs_no_common_minimum() -> None:
    records = bootstrap_records(levels={"metadata.version": 30, ELR: 0})
    assert [type(record) for record in records] == [
        r.BeginTransactionRecord,
        r.FeatureLevelRecord,
        r.EndTransactionRecord,
    ]


def test_a_feature_goes_down_and_up(cluster: Any) -> None:
    answer = update(cluster, ("transaction.version", 0, SAFE_DOWNGRADE), ("group.version", 0, UNSAFE_DOWNGRADE))
    assert (answer.error_code, answer.error_message) == (0, None)
    assert [result.feature for result in answer.results] == ["transaction.version", "group.version"]
    assert "transaction.version" not in cluster.image.features
    assert update(cluster, ("transaction.version", 2, UPGRADE)).error_code == 0
    assert cluster.image.features["transaction.version"] == 2


def test_validating_only_writes_nothing(cluster: Any) -> None:
    assert update(cluster, ("group.version", 0, SAFE_DOWNGRADE), validate_only=True).error_code == 0
    assert cluster.image.features["group.version"] == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ("transaction.version", 1, UPGRADE),  # it is at 2
        ("transaction.version", 3, UPGRADE),  # nobody knows it
        ("transaction.version", -1, SAFE_DOWNGRADE),
        ("transaction.version", 1, 0),
        ("transaction.version", 1, 9),
        ("no.such.version", 1, UPGRADE),
        ("streams.version", 1, UPGRADE),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 31, UPGRADE),
        ("kraft.version", 0, SAFE_DOWNGRADE),
    ],
)
def test_one_wrong_update_fails_them_all(cluster: Any, wrong: tuple[str, int, int]) -> None:
    answer = update(cluster, ("group.version", 0, SAFE_DOWNGRADE), wrong)
    assert answer.error_code == errors.INVALID_UPDATE_VERSION.code
    assert wrong[0] in answer.error_message
    assert cluster.image.features["group.version"] == 1


def test_a_level_cannot_be_downgraded_upwards(cluster: Any) -> None:
    update(cluster, ("group.version", 0, SAFE_DOWNGRADE))
    answer = update(cluster, ("group.version", 1, SAFE_DOWNGRADE))
    assert answer.error_code == errors.INVALID_UPDATE_VERSION.code


def test_a_level_that_is_in_force_can_be_asked_for(cluster: Any) -> None:
    assert update(cluster, ("kraft.version", 1, UPGRADE), ("metadata.version", 30, UPGRADE)).error_code == 0


def test_a_node_that_does_not_know_a_level_holds_it_back(cluster: Any) -> None:
    update(cluster, ("transaction.version", 0, SAFE_DOWNGRADE))
    cluster.apply(r.RegisterBrokerRecord(broker_id=9, log_dirs=[cluster.directory(9)]))
    answer = update(cluster, ("transaction.version", 2, UPGRADE))
    assert "broker 9" in answer.error_message
    cluster.apply(r.UnregisterBrokerRecord(broker_id=9))
    facts = replace(cluster.facts, controller_ids=frozenset((0, 44)))
    assert (
        "controller 44 has yet to register"
        in update(cluster, ("transaction.version", 2, UPGRADE), facts=facts).error_message
    )
    cluster.apply(r.RegisterControllerRecord(controller_id=44))
    assert "controller 44" in update(cluster, ("transaction.version", 2, UPGRADE), facts=facts).error_message


def test_eligible_leaders_bring_one_minimum_for_all(cluster: Any) -> None:
    update(cluster, (ELR, 0, SAFE_DOWNGRADE))
    cluster.apply(
        r.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value=None),
        r.ConfigRecord(resource_type=4, resource_name="1", name="min.insync.replicas", value="3"),
    )
    schema = replace(cluster.facts.schema, static={"min.insync.replicas": "2"})
    assert update(cluster, (ELR, 1, UPGRADE), facts=replace(cluster.facts, schema=schema)).error_code == 0
    assert cluster.image.has_elr
    assert cluster.image.configs.of_cluster()["min.insync.replicas"] == "2"
    assert not cluster.image.configs.of_broker(1)
