"""The new leader named in a refusal (KIP-951), so that a client need not ask for metadata first."""

from __future__ import annotations

from typing import Protocol, TypeVar

from barnabas.broker.request import Request
from barnabas.model.ids import NO_BROKER
from barnabas.replication.partition import Partition

L = TypeVar("L", covariant=True)
E = TypeVar("E", covariant=True)


class LeaderType(Protocol[L]):
    def __call__(self, *, leader_id: int, leader_epoch: int) -> L: ...


class EndpointType(Protocol[E]):
    def __call__(self, *, node_id: int, host: str, port: int, rack: str | None) -> E: ...


def current_leader(partition: Partition, leader_type: LeaderType[L]) -> L:
    return leader_type(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)


def node_endpoints(request: Request, partition: Partition, endpoint_type: EndpointType[E]) -> list[E]:
    if partition.leader_id == NO_BROKER:
        return []
    found = request.broker.endpoint_of(partition.leader_id, request.connection)
    if found is None:
        return []
    host, port, rack = found
    return [endpoint_type(node_id=partition.leader_id, host=host, port=port, rack=rack)]
