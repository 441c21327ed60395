"""Brings markers to partitions wherever in the cluster they are led: written here, or sent to the broker that leads.

One try; ``marker_delivery`` tries again with whatever is not settled, by when the metadata may name another leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.coordinator.transactions.markers import LocalMarkers, Marker
from barnabas.model import errors
from barnabas.model.errors import ApiError, Malformed, WireError, error_of
from barnabas.model.ids import NO_BROKER, TopicPartition
from barnabas.observe.log import logger
from barnabas.replication.replicas import Replicas
from barnabas.transport.channel import PeerGone
from barnabas.transport.links import Links
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from barnabas.world.tasks import Tasks

log = logger("transactions")

LANE: Final = "markers"
MARKERS_PER_REQUEST_MAX: Final = 500

Settled = dict[TopicPartition, WireError]


class _Outgoing(NamedTuple):
    """One transaction's markers for the partitions that one broker leads; whoever waits may have given up."""

    marker: Marker
    partitions: list[TopicPartition]
    settled: asyncio.Future[Settled]

    def settle(self, said: Mapping[TopicPartition, WireError]) -> None:
        if not self.settled.done():
            unsaid = errors.NOT_LEADER_OR_FOLLOWER
            self.settled.set_result({partition: said.get(partition, unsaid) for partition in self.partitions})


class ClusterMarkers:
    def __init__(self, local: LocalMarkers, replicas: Replicas, links: Links) -> None:
        self._local = local
        self._replicas = replicas
        self._links = links
        # By leader. A broker answers one request after the other, so what comes meanwhile shares the next one.
        self._outgoing: dict[int, list[_Outgoing]] = {}
        self._tasks = Tasks()

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
        outgoing = _Outgoing(marker, partitions, asyncio.get_running_loop().create_future())
        self._outgoing.setdefault(leader, []).append(outgoing)
        self._tasks.once(f"markers-to:{leader}", lambda: self._send_all(leader))
        return await outgoing.settled

    async def _send_all(self, leader: int) -> None:
        batch: list[_Outgoing] = []
        try:
            while waiting := self._outgoing.pop(leader, []):
                # Those that nobody waits for must not go any more: their producers may have begun another transaction.
                wanted = [outgoing for outgoing in waiting if not outgoing.settled.done()]
                batch, later = wanted[:MARKERS_PER_REQUEST_MAX], wanted[MARKERS_PER_REQUEST_MAX:]
                if later:
                    self._outgoing[leader] = later
                if batch:
                    await self._send_batch(leader, batch)
        finally:
            for outgoing in (*batch, *self._outgoing.pop(leader, [])):
                outgoing.settle({})  # nothing, if it is settled

    async def _send_batch(self, leader: int, batch: Sequence[_Outgoing]) -> None:
        try:
            answer = await self._links.send(leader, request_of(batch), lane=LANE)
        except (PeerGone, TimeoutError, Malformed, ApiError) as error:
            log.info("markers did not arrive", leader=leader, count=len(batch), reason=error)
            answer = WriteTxnMarkersResponse()
        assert isinstance(answer, WriteTxnMarkersResponse)
        # There is one delivery to a producer at a time, so its id says whose the rows are.
        said = {
            result.producer_id: {
                TopicPartition(topic.name, row.partition_index): error_of(row.error_code)
                for topic in result.topics
                for row in topic.partitions
            }
            for result in answer.markers
        }
        for outgoing in batch:
            outgoing.settle(said.get(outgoing.marker.producer.producer_id, {}))


def request_of(batch: Iterable[_Outgoing]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[_row(marker, partitions) for marker, partitions, _ in batch])


def _row(marker: Marker, partitions: Sequence[TopicPartition]) -> WriteTxnMarkersRequest.WritableTxnMarker:
    topics: dict[str, WriteTxnMarkersRequest.WritableTxnMarkerTopic] = {}
    for name, index in partitions:
        topic = topics.setdefault(name, WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name))
        topic.partition_indexes.append(index)
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=marker.producer.producer_id,
        producer_epoch=marker.producer.producer_epoch,
        transaction_result=marker.is_commit,
        topics=list(topics.values()),
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.version,
    )
