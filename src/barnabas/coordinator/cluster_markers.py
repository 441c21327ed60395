"""Brings markers to partitions wherever in the cluster they are led: written here, or sent to the broker that leads.

One try; ``marker_delivery`` tries again with whatever is not settled, by when the metadata may name another leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from barnabas.coordinator.markers import LocalMarkers, Marker
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, WireError, error_of
from barnabas.model.ids import NO_BROKER, TopicPartition
from barnabas.observe.log import logger
from barnabas.replication.replicas import Replicas
from barnabas.transport.channel import PeerGone
from barnabas.transport.links import Links
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

log = logger("transactions")

LANE: Final = "markers"

Settled = dict[TopicPartition, WireError]


class ClusterMarkers:
    def __init__(self, local: LocalMarkers, replicas: Replicas, links: Links) -> None:
        self._local = local
        self._replicas = replicas
        self._links = links

    async def send(self, marker: Marker, partitions: Sequence[TopicPartition]) -> Settled:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            by_leader.setdefault(self._leader(partition), []).append(partition)
        settled: Settled = {}
        for part in await asyncio.gather(*(self._send_to(leader, marker, led) for leader, led in by_leader.items())):
            settled |= part
        return settled

    def _leader(self, partition: TopicPartition) -> int:
        """Who leads it; this broker where nobody is known to, since it then says what is wrong."""
        topic = self._replicas.image.topics.by_name.get(partition.topic)
        known = topic.partitions if topic is not None else ()
        leader = known[partition.partition].leader if partition.partition < len(known) else NO_BROKER
        return self._replicas.broker_id if leader == NO_BROKER else leader

    async def _send_to(self, leader: int, marker: Marker, partitions: list[TopicPartition]) -> Settled:
        if leader == self._replicas.broker_id:
            return await self._local.send(marker, partitions)
        try:
            answer = await self._links.send(leader, request_of(marker, partitions), lane=LANE)
        except (PeerGone, TimeoutError, Malformed, ApiError) as error:
            log.info("markers did not arrive", leader=leader, reason=error)
            return dict.fromkeys(partitions, errors.NOT_LEADER_OR_FOLLOWER)
        assert isinstance(answer, WriteTxnMarkersResponse)
        said = {
            TopicPartition(topic.name, row.partition_index): error_of(row.error_code)
            for result in answer.markers
            for topic in result.topics
            for row in topic.partitions
        }
        return {partition: said.get(partition, errors.NOT_LEADER_OR_FOLLOWER) for partition in partitions}


def request_of(marker: Marker, partitions: Sequence[TopicPartition]) -> WriteTxnMarkersRequest:
    topics: dict[str, WriteTxnMarkersRequest.WritableTxnMarkerTopic] = {}
    for name, index in partitions:
        topic = topics.setdefault(name, WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name))
        topic.partition_indexes.append(index)
    return WriteTxnMarkersRequest(
        markers=[
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=marker.producer.producer_id,
                producer_epoch=marker.producer.producer_epoch,
                transaction_result=marker.is_commit,
                topics=list(topics.values()),
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.version,
            )
        ]
    )
