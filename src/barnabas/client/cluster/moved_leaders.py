"""What answers to Produce and Fetch say of partitions that their broker leads no more: who does (KIP-951).

Sender and fetcher come here with whatever an answer says of its partitions; the two messages differ in names alone. How
the picture of the cluster changes by it is in ``metadata.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.metadata import Broker
from barnabas.model import errors
from barnabas.model.errors import WireError, error_of
from barnabas.model.ids import TopicPartition

_MOVED: Final = frozenset({errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH})


class Leader(Protocol):
    @property
    def leader_id(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...


class PartitionAnswer(Protocol):
    @property
    def error_code(self) -> int: ...
    @property
    def current_leader(self) -> Leader: ...


class Endpoint(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def rack(self) -> str | None: ...


def learn_leaders(
    cluster: Cluster, answered: Iterable[tuple[TopicPartition, PartitionAnswer]], endpoints: Iterable[Endpoint]
) -> None:
    """Take over the leaders that are named, with the ``endpoints`` that the answer has for them."""
    leaders = {
        place: (part.current_leader.leader_id, part.current_leader.leader_epoch)
        for place, part in answered
        if part.error_code and error_of(part.error_code) in _MOVED
    }
    if leaders:
        nodes = [Broker(node.node_id, node.host, node.port, node.rack) for node in endpoints]
        cluster.learn_leaders(leaders, nodes)


def is_leader_found(cluster: Cluster, place: TopicPartition, error: WireError, *, asked_epoch: int) -> bool:
    """Whether a newer leader than the one that was asked is known already: he is asked at once, without a pause."""
    return error in _MOVED and cluster.metadata.leader_epoch(place) > asked_epoch
