"""The finalized level of every feature, which is how a cluster says what all its nodes may rely on.

The picture keeps them as a plain map; a feature that is off has no entry. Which levels exist and who may change them
is in ``features``. ApiVersions tells clients what is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from immutables import Map

from barnabas.metadata.records import FeatureLevelRecord

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"

Levels: TypeAlias = Map[str, int]


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
