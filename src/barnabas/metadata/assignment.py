"""Where the replicas of new partitions go, chosen here or named by hand, and what such a partition looks like at first.

Placement itself is in ``placement``; which partitions are wanted is the business of ``topics`` and ``partitions``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barnabas.metadata.image import ClusterImage
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.placement import UsableBroker, place
from barnabas.model.errors import INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, ApiError


def usable_brokers(image: ClusterImage) -> Iterator[UsableBroker]:
    """Who may be given replicas: fenced brokers may come back, one that shuts down or is cordoned off may not."""
    for broker_id in sorted(image.brokers):
        broker = image.brokers[broker_id]
        if (broker.is_fenced or not broker.in_controlled_shutdown) and broker.has_uncordoned_directories:
            yield UsableBroker(broker_id, broker.rack, broker.is_fenced)


def place_partitions(
    image: ClusterImage, *, partition_count: int, replication_factor: int, seed: int
) -> list[PartitionImage]:
    """New partitions on brokers of our choice, or INVALID_REPLICATION_FACTOR."""
    try:
        placed = place(
            usable_brokers(image), partition_count=partition_count, replication_factor=replication_factor, seed=seed
        )
        return [_placed(image, replicas) for replicas in placed]
    except ApiError as error:
        raise ApiError(error.error, f"no place for {replication_factor} replicas: {error.message}") from None


def _placed(image: ClusterImage, replicas: Sequence[int]) -> PartitionImage:
    if not any(image.is_active(broker_id) for broker_id in replicas):
        raise ApiError(INVALID_REPLICATION_FACTOR, "the brokers that could take them are fenced or shutting down")
    return new_partition(image, replicas)


def assigned_partition(image: ClusterImage, index: int, replicas: Sequence[int]) -> PartitionImage:
    """A new partition on brokers named by hand; one of them must be able to lead."""
    if not any(image.is_active(broker_id) for broker_id in replicas):
        raise ApiError(
            INVALID_REPLICA_ASSIGNMENT,
            f"partition {index} would have no leader: its brokers {list(replicas)} are all fenced or shutting down",
        )
    return new_partition(image, replicas)


def new_partition(image: ClusterImage, replicas: Sequence[int]) -> PartitionImage:
    isr = tuple(broker_id for broker_id in replicas if image.is_active(broker_id))
    return PartitionImage(
        replicas=tuple(replicas),
        directories=tuple(image.default_directory(broker_id) for broker_id in replicas),
        isr=isr,
        leader=isr[0],
    )


def check_assignment(image: ClusterImage, replicas: Sequence[int], *, replication_factor: int | None) -> None:
    """INVALID_REPLICA_ASSIGNMENT unless these are distinct registered brokers, as many as asked."""
    if not replicas:
        raise ApiError(
            INVALID_REPLICA_ASSIGNMENT, "a partition has at least one replica, and the assignment names none"
        )
    previous: int | None = None
    for broker_id in sorted(replicas):
        if broker_id not in image.brokers:
            raise ApiError(
                INVALID_REPLICA_ASSIGNMENT,
                f"the assignment names broker {broker_id}, which is not registered",
            )
        if broker_id == previous:
            raise ApiError(INVALID_REPLICA_ASSIGNMENT, f"the assignment names broker {broker_id} twice")
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise ApiError(
            INVALID_REPLICA_ASSIGNMENT,
            f"the assignment is of {len(replicas)} replicas, and others of the topic are of {replication_factor}",
        )
