"""Puts the transaction coordinator together from the broker's parts.

What it decides is in ``coordinator/transactions/shard.py``, what clients may ask in the handlers. How the markers of a
transaction reach its partitions is the sender's business: the node brings one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
from barnabas.coordinator.transactions.markers import MarkerSender
from barnabas.coordinator.transactions.shard import TransactionRules
from barnabas.metadata.features_image import TRANSACTION_VERSION
from barnabas.metadata.image import ClusterImage
from barnabas.replication.replicas import Replicas
from barnabas.world.timers import Timers
from barnabas.world.world import World


def transaction_version(image: ClusterImage) -> int:
    """The cluster's level of the feature: 2 is KIP-890."""
    return image.features.get(TRANSACTION_VERSION, 0)


def make_transaction_coordinator(
    *,
    world: World,
    timers: Timers,
    replicas: Replicas,
    settings: Callable[[], BrokerSettings],
    next_producer_id: Callable[[], Awaitable[int]],
    sender: MarkerSender,
) -> TransactionCoordinator:
    def rules() -> TransactionRules:
        return settings().transactions.rules(feature_level=transaction_version(replicas.image))

    return TransactionCoordinator(
        replicas=replicas,
        world=world,
        timers=timers,
        rules=rules,
        next_producer_id=next_producer_id,
        sender=sender,
    )
