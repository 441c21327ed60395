"""The first records of a new cluster: what release 4.3 writes when it finds an empty metadata log.

They are one metadata transaction, so a controller that dies within leaves nothing behind. The controller's driver
writes them; credentials that must exist from the start go in as ``extra``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.metadata.config_schema import MIN_INSYNC_REPLICAS
from barnabas.metadata.configs_image import CLUSTER_DEFAULT
from barnabas.metadata.features_image import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
)
from barnabas.metadata.records import (
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from barnabas.wire.message import Message

# The quorum's own level is kept by Raft.
DEFAULT_LEVELS: Final[Mapping[str, int]] = {
    name: levels.highest for name, levels in SUPPORTED_FEATURES.items() if name != KRAFT_VERSION
}


def bootstrap_records(
    *,
    min_insync_replicas: int = 1,
    levels: Mapping[str, int] = DEFAULT_LEVELS,
    extra: Sequence[Message] = (),
) -> list[Message]:
    # Readers must know first how new the log is.
    names = sorted(levels, key=lambda name: (name != METADATA_VERSION, name))
    records: list[Message] = [BeginTransactionRecord(name="Bootstrap records")]
    records += [FeatureLevelRecord(name=name, feature_level=levels[name]) for name in names if levels[name]]
    records += extra
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION):
        records.append(
            ConfigRecord(
                resource_type=CLUSTER_DEFAULT.type,
                resource_name=CLUSTER_DEFAULT.name,
                name=MIN_INSYNC_REPLICAS,
                value=str(min_insync_replicas),
            )
        )
    records.append(EndTransactionRecord())
    return records
