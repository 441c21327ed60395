"""What a decision of the controller is: the records to write, and the answer once they are committed.

Every decision is a pure function of a picture of the cluster, a request and facts; the functions are in modules by
noun, and ``controller`` lists them all. The driver writes the records and gives the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from barnabas.metadata.brokers_image import VersionRange
from barnabas.metadata.config_schema import ConfigSchema
from barnabas.metadata.features_image import SUPPORTED_FEATURES
from barnabas.model.errors import POLICY_VIOLATION, ApiError
from barnabas.wire.message import Message

R = TypeVar("R")

RECORDS_MAX: Final = 10_000  # of one decision: they travel in one batch, and nothing of it counts before all of it does
PARTITIONS_PER_REQUEST_MAX: Final = 10_000


def check_size(record_count: int) -> None:
    """POLICY_VIOLATION if a decision would write more than fits in one batch."""
    if record_count > RECORDS_MAX:
        raise ApiError(POLICY_VIOLATION, f"one request may change {RECORDS_MAX} things, and this is more: ask in parts")


class Decision(NamedTuple, Generic[R]):
    records: list[Message]
    response: R


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the controller knows of itself: nothing here is in the log."""

    cluster_id: str
    node_id: int
    schema: ConfigSchema
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    features: Mapping[str, VersionRange] = field(default_factory=lambda: SUPPORTED_FEATURES)
    controller_ids: frozenset[int] = frozenset()  # the voters
