"""The new leader named in a refusal (KIP-951), so that a client need not ask for metadata first.

A partition that is here knows it best; of one that is not, the metadata says it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

from barnabas.broker.requests.request import Request
from barnabas.model.ids import NO_BROKER, ZERO_UUID, Uuid

E = TypeVar("E", covariant=True)


class Leader(NamedTuple):
    leader_id: int
    leader_epoch: int


class EndpointType(Protocol[E]):
    def __call__(self, *, node_id: int, host: str, port: int, rack: str | None) -> E: ...


def leader_of(request: Request, topic: str, topic_id: Uuid, index: int) -> Leader | None:
    """Who leads a partition, as far as this broker knows; None if it has never heard of it."""
    replicas = request.broker.replicas
    partition = replicas.hosted(topic, topic_id or ZERO_UUID, index)
    if partition is not None:
        return Leader(partition.leader_id, partition.leader_epoch)
    state = replicas.state_of(topic, topic_id, index)
    return None if state is None else Leader(state.leader, state.leader_epoch)


def node_endpoints(request: Request, leaders: set[int], endpoint_type: EndpointType[E]) -> list[E]:
    """Where these brokers are reached on the listener that the client uses, each once."""
    found = []
    for leader_id in sorted(leaders - {NO_BROKER}):
        endpoint = request.broker.endpoint_of(leader_id, request.connection)
        if endpoint is not None:
            host, port, rack = endpoint
            found.append(endpoint_type(node_id=leader_id, host=host, port=port, rack=rack))
    return found
