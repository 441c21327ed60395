"""AssignReplicasToDirs: a broker says in which of its directories its replicas lie (KIP-858).

So the controller knows which partitions are gone when a directory fails. A replica said to lie in a directory that is
not online leaves the ISR at once. Directories that fail later come with heartbeats (``heartbeats``).
"""

from __future__ import annotations

from barnabas.metadata.decision import Decision, Facts, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.leader_changes import change_of
from barnabas.metadata.partition_image import TopicIdPartition
from barnabas.metadata.registrations import check_broker_epoch
from barnabas.model.errors import (
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    WireError,
)
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

Response = AssignReplicasToDirsResponse


def assign_replicas_to_dirs(
    image: ClusterImage, request: AssignReplicasToDirsRequest, facts: Facts
) -> Decision[AssignReplicasToDirsResponse]:
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    records: list[Message] = []
    response = Response()
    for directory in request.directories:
        answered = Response.DirectoryData(id=directory.id)
        for topic in directory.topics:
            rows = []
            for asked in topic.partitions:
                key = TopicIdPartition(topic.topic_id, asked.partition_index)
                error = _assign(image, facts, request.broker_id, key, directory.id, records)
                rows.append(Response.PartitionData(partition_index=key.partition, error_code=error.code))
            answered.topics.append(Response.TopicData(topic_id=topic.topic_id, partitions=rows))
        response.directories.append(answered)
    check_size(len(records))
    return Decision(records, response)


def _assign(
    image: ClusterImage,
    facts: Facts,
    broker_id: int,
    key: TopicIdPartition,
    directory: Uuid,
    records: list[Message],
) -> WireError:
    topic = image.topic_of_id(key.topic_id)
    if topic is None:
        return UNKNOWN_TOPIC_ID
    if not 0 <= key.partition < len(topic.partitions):
        return UNKNOWN_TOPIC_OR_PARTITION
    partition = topic.partitions[key.partition]
    if broker_id not in partition.replicas:
        return NOT_LEADER_OR_FOLLOWER
    change = change_of(image, facts.schema, key)
    change.directories = {broker_id: directory}
    if not image.brokers[broker_id].has_online(directory):
        may_lead = change.is_acceptable
        change.is_acceptable = lambda candidate: candidate != broker_id and may_lead(candidate)
        change.isr = tuple(replica for replica in partition.isr if replica != broker_id)
    record = change.record()
    if record is not None:
        records.append(record)
    return NONE
