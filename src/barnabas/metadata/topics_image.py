"""All topics and partitions, by name and by id, and the builder that makes the next picture from a batch of records.

Pictures share their structure: a batch costs what it changes. What the records mean for configurations is not here
(removing a topic removes them too; ``image_builder`` sees to both).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from immutables import Map

from barnabas.metadata.partition_image import PartitionImage, TopicIdPartition
from barnabas.metadata.partition_index import PartitionIndex, PartitionIndexBuilder
from barnabas.metadata.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.metadata.topic_names import can_collide, unified
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message


class TopicImage(NamedTuple):
    name: str
    id: Uuid
    partitions: tuple[PartitionImage, ...]


@dataclass(frozen=True, slots=True)
class TopicsImage:
    by_name: Map[str, TopicImage] = field(default_factory=Map)
    by_id: Map[Uuid, TopicImage] = field(default_factory=Map)
    collisions: Map[str, tuple[str, ...]] = field(
        default_factory=Map
    )  # by unified name: the topics whose metrics would bear it
    index: PartitionIndex = field(default_factory=PartitionIndex)

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def __len__(self) -> int:
        return len(self.by_name)

    def partition(self, key: TopicIdPartition) -> PartitionImage:
        return self.by_id[key.topic_id].partitions[key.partition]

    def records(self) -> Iterator[Message]:
        for name in sorted(self.by_name):
            topic = self.by_name[name]
            yield TopicRecord(name=name, topic_id=topic.id)
            for index, partition in enumerate(topic.partitions):
                yield partition.record(topic.id, index)


class TopicsBuilder:
    """Applies the records of one batch. A topic is opened once, however many of its partitions change."""

    __slots__ = ("_by_id", "_by_name", "_collisions", "_index", "_open", "changed", "created", "deleted")

    def __init__(self, image: TopicsImage) -> None:
        self._by_name = image.by_name.mutate()
        self._by_id = image.by_id.mutate()
        self._collisions = image.collisions.mutate()
        self._index = PartitionIndexBuilder(image.index)
        self._open: dict[Uuid, tuple[str, dict[int, PartitionImage]]] = {}
        # What was touched, in the order of the log.
        self.created: dict[Uuid, None] = {}
        self.deleted: dict[Uuid, TopicImage] = {}
        self.changed: dict[TopicIdPartition, None] = {}

    def add_topic(self, record: TopicRecord) -> None:
        if record.name in self._by_name or record.topic_id in self._by_id:
            raise Malformed(f"the topic {record.name} ({record.topic_id}) exists already")
        topic = TopicImage(record.name, record.topic_id, ())
        self._by_name[record.name] = self._by_id[record.topic_id] = topic
        if can_collide(record.name):
            unified_name = unified(record.name)
            self._collisions[unified_name] = (*self._collisions.get(unified_name, ()), record.name)
        self.created[record.topic_id] = None

    def add_partition(self, record: PartitionRecord) -> None:
        self._put(TopicIdPartition(record.topic_id, record.partition_id), PartitionImage.of(record))

    def change_partition(self, record: PartitionChangeRecord) -> None:
        key = TopicIdPartition(record.topic_id, record.partition_id)
        partition = self._opened(key.topic_id)[1].get(key.partition)
        if partition is None:
            raise Malformed(f"a change of the partition {key.partition} of {key.topic_id}, which does not exist")
        self._put(key, partition.merged(record))

    def remove_topic(self, record: RemoveTopicRecord) -> str:
        """The name that is free again."""
        name, partitions = self._opened(record.topic_id)
        topic = self._frozen(record.topic_id, name, partitions)
        for index, partition in enumerate(topic.partitions):
            self._index.update(TopicIdPartition(topic.id, index), partition, None)
            self.changed.pop(TopicIdPartition(topic.id, index), None)
        del self._by_name[name], self._by_id[topic.id], self._open[topic.id]
        if can_collide(name):
            others = tuple(other for other in self._collisions[unified(name)] if other != name)
            if others:
                self._collisions[unified(name)] = others
            else:
                del self._collisions[unified(name)]
        # A topic that came and went within one batch was never there for anybody.
        if self.created.pop(topic.id, topic) is topic:
            self.deleted[topic.id] = topic
        return name

    def clear_elr(self, record: ClearElrRecord, with_elr: Iterator[TopicIdPartition]) -> None:
        """Forget the eligible leaders of one topic, or of all that ``with_elr`` and this batch name."""
        if record.topic_name:
            topic = self._by_name.get(record.topic_name)
            if topic is None:
                raise Malformed(f"a ClearElrRecord for the topic {record.topic_name}, which does not exist")
            keys = {TopicIdPartition(topic.id, index) for index in self._opened(topic.id)[1]}
        else:
            keys = set(with_elr) | set(self.changed)
        for key in sorted(keys):
            if key.topic_id not in self._by_id:
                continue
            partition = self._opened(key.topic_id)[1][key.partition]
            if partition.elr or partition.last_known_elr:
                self._put(key, partition.without_elr())

    def build(self) -> TopicsImage:
        for topic_id, (name, partitions) in self._open.items():
            self._by_name[name] = self._by_id[topic_id] = self._frozen(topic_id, name, partitions)
        return TopicsImage(self._by_name.finish(), self._by_id.finish(), self._collisions.finish(), self._index.build())

    def _opened(self, topic_id: Uuid) -> tuple[str, dict[int, PartitionImage]]:
        opened = self._open.get(topic_id)
        if opened is None:
            topic = self._by_id.get(topic_id)
            if topic is None:
                raise Malformed(f"a record for the topic {topic_id}, which does not exist")
            opened = self._open[topic_id] = (topic.name, dict(enumerate(topic.partitions)))
        return opened

    def _put(self, key: TopicIdPartition, partition: PartitionImage) -> None:
        partitions = self._opened(key.topic_id)[1]
        self._index.update(key, partitions.get(key.partition), partition)
        partitions[key.partition] = partition
        self.changed[key] = None

    @staticmethod
    def _frozen(topic_id: Uuid, name: str, partitions: dict[int, PartitionImage]) -> TopicImage:
        try:
            return TopicImage(name, topic_id, tuple([partitions[index] for index in range(len(partitions))]))
        except KeyError as error:
            raise Malformed(f"the topic {name} has {len(partitions)} partitions but no partition {error}") from None
