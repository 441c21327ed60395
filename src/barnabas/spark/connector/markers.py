"""Which batches of a stream a sink has: one number for each task, written in the same transaction as its records.

A marker is an offset that a group of the sink's own stores for a partition of a topic that holds no records. So it
counts if, and only if, the records do, and costs one small request. Used by tasks; ``writing.py`` decides by it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.client.admin.client import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.coordinators import Coordinator, KeyKind
from barnabas.client.group.commits import Commits, GroupMetadata, OffsetAndMetadata
from barnabas.client.producer import Producer
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition

TOPIC: Final = "__barnabas_sinks"
SLOTS: Final = 32  # partitions of the topic; tasks beyond that take another group


class Content(NamedTuple):
    """What a task wrote, as far as needed to notice that it is something else the next time."""

    rows: int = 0
    size_bytes: int = 0

    def plus(self, rows: int, size_bytes: int) -> Content:
        return Content(self.rows + rows, self.size_bytes + size_bytes)

    def __str__(self) -> str:
        return f"{self.rows} records of {self.size_bytes} bytes"


class Marker(NamedTuple):
    batch_id: int
    content: Content


class Slot(NamedTuple):
    """Where the marker of one task of one sink is."""

    group: str
    place: TopicPartition

    @classmethod
    def of(cls, sink_id: str, task: int) -> Slot:
        more = f".{task // SLOTS}" if task >= SLOTS else ""
        return cls(f"{sink_id}{more}", TopicPartition(TOPIC, task % SLOTS))

    async def read(self, cluster: Cluster) -> Marker | None:
        """The last batch that was committed. To be asked when no transaction of the task is open any more."""
        commits = Commits(cluster, Coordinator(cluster, KeyKind.GROUP, self.group))
        entry = (await commits.fetch(self.group, [self.place]))[self.place]
        if entry is None:
            return None
        rows, _, size_bytes = entry.metadata.partition(" ")
        return Marker(entry.offset, Content(int(rows), int(size_bytes)))

    async def write(self, producer: Producer, marker: Marker) -> None:
        """As a part of the open transaction."""
        metadata = f"{marker.content.rows} {marker.content.size_bytes}"
        await producer.send_offsets(
            {self.place: OffsetAndMetadata(marker.batch_id, metadata)}, GroupMetadata(self.group)
        )


async def ensure_topic(cluster: Cluster) -> None:
    """Make the topic, unless it is there; one that somebody has made with fewer partitions is given the rest.

    Nothing may be sent at the same time: what makes another topic on the way would make this one too, too small.
    """
    found = cluster.known_topic(TOPIC) or (await cluster.look_up([TOPIC])).get(TOPIC)
    if found is not None and len(found.partitions) >= SLOTS:
        return
    admin = Admin(cluster=cluster)
    try:
        if found is None:
            await admin.create_topic(NewTopic(TOPIC, SLOTS, configs={"cleanup.policy": "compact"}))
        else:
            refused = (await admin.create_partitions({TOPIC: SLOTS}))[TOPIC]
            if refused is not None and refused.error is not errors.INVALID_PARTITIONS:  # another task was first
                raise refused
    except ApiError as error:
        if error.error is not errors.TOPIC_ALREADY_EXISTS:
            raise
    await cluster.topic(TOPIC)
