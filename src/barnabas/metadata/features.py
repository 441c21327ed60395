"""Who may raise or lower the level of a feature.

A level is finalized for the whole cluster by a record; nodes that do not know it cannot register, so every node is
asked first. The first records of a new cluster are in ``bootstrap``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.metadata.brokers_image import VersionRange
from barnabas.metadata.config_schema import MIN_INSYNC_REPLICAS
from barnabas.metadata.configs_image import CLUSTER_DEFAULT, ConfigsImage, ResourceType
from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.features_image import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    SUPPORTED_FEATURES,
    finalized,
)
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.records import ConfigRecord, FeatureLevelRecord
from barnabas.model.errors import INVALID_UPDATE_VERSION, ApiError
from barnabas.wire.message import Message
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

__all__ = ["SUPPORTED_FEATURES", "elr_safety_records", "lowered_features", "update_features"]

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
OPTIONAL_FEATURES: Final = ("share.version", "streams.version")
_DISABLED: Final = VersionRange(0, 0)


def update_features(
    image: ClusterImage, request: UpdateFeaturesRequest, facts: Facts
) -> Decision[UpdateFeaturesResponse]:
    """All updates or none. Versions before 2 hear a result per feature, which the codec leaves out of later ones."""
    records: list[Message] = []
    try:
        for update in request.feature_updates:
            upgrade_type = SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
            records.extend(_update(image, facts, update.feature, update.max_version_level, upgrade_type))
    except ApiError as error:
        sentence = f"no feature was changed: {error.message}"
        return Decision([], UpdateFeaturesResponse(error_code=error.error.code, error_message=sentence))
    enables_elr = any(
        update.feature == ELIGIBLE_LEADER_REPLICAS_VERSION and update.max_version_level > 0
        for update in request.feature_updates
    )
    if enables_elr:
        records = [*elr_safety_records(image.configs, facts), *records]
    results = [
        UpdateFeaturesResponse.UpdatableFeatureResult(feature=update.feature, error_message=None)
        for update in request.feature_updates
    ]
    return Decision(
        [] if request.validate_only else records, UpdateFeaturesResponse(error_message=None, results=results)
    )


def _update(image: ClusterImage, facts: Facts, name: str, level: int, upgrade_type: int) -> Iterator[Message]:
    current = finalized(image.features).get(name, 0)

    def refused(reason: str) -> ApiError:
        return ApiError(INVALID_UPDATE_VERSION, f"{name} cannot go to level {level}: {reason}")

    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise refused(f"one goes up (1), safely down (2) or unsafely down (3), not {upgrade_type}")
    if level < 0:
        raise refused("levels begin at 0")
    reason = _reason_not_supported(image, facts, name, level)
    if reason is not None:
        raise refused(reason)
    if level < current and upgrade_type == UPGRADE:
        raise refused(f"it is at {current}, and to go down one must ask for a downgrade, a safe or an unsafe one")
    if level > current and upgrade_type != UPGRADE:
        raise refused(f"it is at {current}, so this is no downgrade")
    # The quorum's own level is no record of this log; the only one there is, is in force already.
    if name != KRAFT_VERSION:
        yield FeatureLevelRecord(name=name, feature_level=level)


def _reason_not_supported(image: ClusterImage, facts: Facts, name: str, level: int) -> str | None:
    """Every node that is or may come back must know the level."""
    nodes = [(f"controller {facts.node_id}", facts.features.get(name, _DISABLED))]
    nodes += [
        (f"broker {broker_id}", image.brokers[broker_id].features.get(name, _DISABLED))
        for broker_id in sorted(image.brokers)
    ]
    nodes += [
        (f"controller {controller_id}", image.controllers[controller_id].features.get(name, _DISABLED))
        for controller_id in sorted(image.controllers)
        if controller_id != facts.node_id
    ]
    for who, levels in nodes:
        if level not in levels:
            return f"{who} does not have it" if levels.highest == 0 else f"{who} has the levels {levels}"
    for controller_id in sorted(facts.controller_ids):
        if controller_id != facts.node_id and controller_id not in image.controllers:
            return f"controller {controller_id} has yet to register and to say which levels it has"
    return None


def lowered_features(image: ClusterImage, *, node_id: int) -> list[FeatureLevelRecord]:
    """Records that switch off, in a cluster of this node alone, kinds of groups that another version had switched on.

    Such as share groups in a directory that Apache Kafka wrote: topics, other groups and transactions do not need them.
    """
    if {*image.brokers, *image.controllers} - {node_id}:
        return []
    return [
        FeatureLevelRecord(name=name, feature_level=SUPPORTED_FEATURES.get(name, _DISABLED).highest)
        for name in OPTIONAL_FEATURES
        if image.features.get(name, 0) > SUPPORTED_FEATURES.get(name, _DISABLED).highest
    ]


def elr_safety_records(configs: ConfigsImage, facts: Facts) -> Iterator[ConfigRecord]:
    """Eligible leader replicas need one min.insync.replicas for the whole cluster, written down."""
    if MIN_INSYNC_REPLICAS not in configs.of_cluster():
        yield ConfigRecord(
            resource_type=CLUSTER_DEFAULT.type,
            resource_name=CLUSTER_DEFAULT.name,
            name=MIN_INSYNC_REPLICAS,
            value=facts.schema.static.get(MIN_INSYNC_REPLICAS, "1"),
        )
    for resource in sorted(configs.by_resource):
        if resource.type == ResourceType.BROKER and resource.name and MIN_INSYNC_REPLICAS in configs.of(resource):
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=MIN_INSYNC_REPLICAS, value=None
            )
