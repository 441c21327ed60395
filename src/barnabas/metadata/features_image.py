"""The finalized level of every feature, which is how a cluster says what all its nodes may rely on.

The picture keeps them as a plain map; a feature that is off has no entry. Who may change a level is decided in
``features``. ApiVersions tells clients what is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from immutables import Map

from barnabas.metadata.brokers_image import VersionRange
from barnabas.metadata.records import FeatureLevelRecord

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"

# What this version of the code can run at. Records are written as level 30 of metadata.version (4.3-IV0) has them.
SUPPORTED_FEATURES: Final[Mapping[str, VersionRange]] = {
    METADATA_VERSION: VersionRange(30, 30),
    KRAFT_VERSION: VersionRange(1, 1),
    TRANSACTION_VERSION: VersionRange(0, 2),
    GROUP_VERSION: VersionRange(0, 1),
    ELIGIBLE_LEADER_REPLICAS_VERSION: VersionRange(0, 1),
    SHARE_VERSION: VersionRange(0, 1),
}

Levels: TypeAlias = Map[str, int]


def finalized(levels: Levels) -> Levels:
    """The levels as nodes and clients are told them: that of the quorum itself is kept by Raft, not by records here."""
    return levels.set(KRAFT_VERSION, SUPPORTED_FEATURES[KRAFT_VERSION].highest)


def with_level(levels: Levels, record: FeatureLevelRecord) -> Levels:
    if record.feature_level:
        return levels.set(record.name, record.feature_level)
    return levels.delete(record.name) if record.name in levels else levels


def has_elr(levels: Levels) -> bool:
    """Whether the cluster keeps eligible leader replicas (KIP-966)."""
    return levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0


def records(levels: Levels) -> Iterator[FeatureLevelRecord]:
    # Readers of a snapshot must know first how new it is.
    for name in sorted(levels, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=levels[name])
