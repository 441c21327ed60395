"""The ends of partitions wherever they are led, for the lag of share groups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from barnabas.broker.requests.services import Services
from barnabas.model.errors import ApiError, Malformed
from barnabas.model.ids import TopicPartition
from barnabas.transport.channel import PeerGone
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LANE = "share-lag"
LATEST = -1


async def end_offsets(broker: Services, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The high watermarks of partitions; those whose leader does not answer are left out."""
    found: dict[TopicPartition, int] = {}
    elsewhere: dict[int, list[TopicPartition]] = {}
    for place in partitions:
        topic = broker.image.topics.by_name.get(place.topic)
        if topic is None or place.partition >= len(topic.partitions):
            continue
        leader = topic.partitions[place.partition].leader
        if leader != broker.broker_id:
            elsewhere.setdefault(leader, []).append(place)
            continue
        try:
            found[place] = broker.replicas.leader(*place).log.high_watermark
        except ApiError:
            continue  # leadership is moving
    for part in await asyncio.gather(*(_ask(broker, leader, places) for leader, places in elsewhere.items())):
        found |= part
    return found


async def _ask(broker: Services, leader: int, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for name, index in places:
        topic = topics.setdefault(name, ListOffsetsRequest.ListOffsetsTopic(name=name))
        topic.partitions.append(ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=LATEST))
    request = ListOffsetsRequest(replica_id=-1, topics=list(topics.values()))
    try:
        answer = await broker.broker_links.send(leader, request, lane=LANE)
    except (PeerGone, TimeoutError, Malformed, ApiError):
        return {}
    assert isinstance(answer, ListOffsetsResponse)
    return {
        TopicPartition(topic.name, row.partition_index): row.offset
        for topic in answer.topics
        for row in topic.partitions
        if not row.error_code
    }
