"""Markers for partitions on other brokers: what is ready while a request is under way shares the next one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from barnabas.coordinator.runtime.effects import ProducerIdEpoch
from barnabas.coordinator.transactions.cluster_markers import ClusterMarkers
from barnabas.coordinator.transactions.markers import Marker
from barnabas.model import errors
from barnabas.model.ids import TopicPartition
from barnabas.transport.channel import PeerGone
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

LEADER = 2


class Wire:
    """Holds every request until it is let go."""

    def __init__(self) -> None:
        self.sent: list[tuple[WriteTxnMarkersRequest, asyncio.Future[bool]]] = []

    async def send(self, node_id: int, request: WriteTxnMarkersRequest, *, lane: str) -> WriteTxnMarkersResponse:
        assert (node_id, lane) == (LEADER, "markers")
        arrives = asyncio.get_running_loop().create_future()
        self.sent.append((request, arrives))
        if not await arrives:
            raise PeerGone("it is away")
        return WriteTxnMarkersResponse(
            markers=[
                WriteTxnMarkersResponse.WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=marker.producer_id
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    def producers(self, number: int) -> list[int]:
        return [marker.producer_id for marker in self.sent[number][0].markers]


def markers_over(wire: Wire) -> ClusterMarkers:
    led = SimpleNamespace(partitions=[SimpleNamespace(leader=LEADER)] * 3)
    image = SimpleNamespace(topics=SimpleNamespace(by_name={"t": led}))
    return ClusterMarkers(cast(Any, None), cast(Any, SimpleNamespace(image=image, broker_id=1)), cast(Any, wire))


def marker(producer_id: int) -> Marker:
    return Marker(ProducerIdEpoch(producer_id, 0), True, 0, 2)


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_is_ready_while_a_request_is_under_way_shares_the_next() -> None:
    async def main() -> None:
        wire = Wire()
        markers = markers_over(wire)
        partitions = [TopicPartition("t", 0), TopicPartition("t", 2)]
        sending = []
        for producer in (0, 3, 6):
            sending.append(asyncio.ensure_future(markers.send(marker(producer), partitions)))
            await turn()
        assert wire.producers(0) == [0]
        wire.sent[0][1].set_result(True)
        await turn()
        assert wire.producers(1) == [3, 6]
        wire.sent[1][1].set_result(True)
        settled = await asyncio.gather(*sending)
        assert settled == [
            dict.fromkeys(partitions, error)
            for error in (errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION, errors.NOT_LEADER_OR_FOLLOWER)
        ]
        await turn()
        assert not markers._tasks
        assert not markers._outgoing

    asyncio.run(main())


def test_markers_that_nobody_waits_for_any_more_do_not_go() -> None:
    async def main() -> None:
        wire = Wire()
        markers = markers_over(wire)
        sending = [asyncio.ensure_future(markers.send(marker(each), [TopicPartition("t", 0)])) for each in (0, 1, 2)]
        await turn()
        assert wire.producers(0) == [0, 1, 2], "all of one turn go together"
        late = [asyncio.ensure_future(markers.send(marker(each), [TopicPartition("t", 0)])) for each in (3, 6)]
        await turn()
        late[0].cancel()
        await turn()
        wire.sent[0][1].set_result(True)
        await turn()
        assert wire.producers(1) == [6]
        wire.sent[1][1].set_result(True)
        await asyncio.gather(*sending, late[1])

    asyncio.run(main())


def test_a_broker_that_is_away_settles_nothing_and_all_may_try_again() -> None:
    async def main() -> None:
        wire = Wire()
        markers = markers_over(wire)
        place = TopicPartition("t", 0)
        sending = [asyncio.ensure_future(markers.send(marker(each), [place])) for each in (0, 1)]
        await turn()
        wire.sent[0][1].set_result(False)
        assert await asyncio.gather(*sending) == [{place: errors.NOT_LEADER_OR_FOLLOWER}] * 2
        again = asyncio.ensure_future(markers.send(marker(0), [place]))
        await turn()
        wire.sent[1][1].set_result(True)
        assert await again == {place: errors.NONE}

    asyncio.run(main())
