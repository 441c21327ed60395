"""What this broker knows of itself, in the text form of Prometheus, under the names that public dashboards use.

Only numbers that are true are here: what the metadata, the logs and the listeners say at the moment of asking. Nothing
is counted on the way of a request for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from barnabas.broker.group_metrics import of_groups
from barnabas.broker.services import Services
from barnabas.metadata.partition_image import PartitionImage
from barnabas.transport.listener import Listener

Labels: TypeAlias = "tuple[tuple[str, str], ...]"

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
RUNNING: Final = 3  # Kafka's number for a broker that runs
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    value: int | float
    labels: Labels = ()


class Family(NamedTuple):
    name: str
    doc: str
    samples: Iterable[Sample]


def exposition(broker: Services, listeners: Sequence[Listener]) -> Iterator[str]:
    """The page, piece by piece."""
    groups = (
        Family(name, doc, (Sample(*sample) for sample in samples))
        for name, doc, samples in of_groups(broker.groups.lags)
    )
    for family in (*_of_broker(broker, listeners), *_of_partitions(broker), *_of_logs(broker), *groups):
        yield f"# HELP {family.name} {family.doc}\n# TYPE {family.name} gauge\n"
        for value, labels in family.samples:
            text = ",".join(f'{name}="{label.translate(_ESCAPES)}"' for name, label in labels)
            yield f"{family.name}{{{text}}} {value}\n" if text else f"{family.name} {value}\n"


def _of_broker(broker: Services, listeners: Sequence[Listener]) -> Iterator[Family]:
    image, quorum = broker.image, broker.raft.describe()
    alive = {node_id for node_id, node in image.brokers.items() if not node.is_fenced}
    all_partitions = [partition for topic in image.topics.by_name.values() for partition in topic.partitions]
    here = [partition for partition in all_partitions if broker.broker_id in partition.replicas]
    led = [partition for partition in here if partition.leader == broker.broker_id]
    under_minimum = sum(
        1
        for topic in image.topics.by_name.values()
        for index in range(len(topic.partitions))
        if (hosted := broker.replicas.hosted(topic.name, topic.id, index)) is not None
        and hosted.image.leader == broker.broker_id
        and not hosted.is_in_sync_enough
    )

    def one(name: str, doc: str, value: int) -> Family:
        return Family(name, doc, (Sample(value),))

    yield one("kafka_server_kafkaserver_brokerstate", "The state of this broker; 3 is running.", RUNNING)
    yield one("kafka_brokers", "Brokers of the cluster that are alive.", len(alive))
    yield one("kafka_server_replicamanager_partitioncount", "Partitions with a replica here.", len(here))
    yield one("kafka_server_replicamanager_leadercount", "Partitions led here.", len(led))
    yield one(
        "kafka_server_replicamanager_underreplicatedpartitions",
        "Partitions led here with a replica that is not in sync.",
        sum(1 for partition in led if _is_under_replicated(partition)),
    )
    yield one(
        "kafka_server_replicamanager_underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
        under_minimum,
    )
    yield one(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "Whether this node is the active controller.",
        int(quorum.is_leader),
    )
    yield one(
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "Partitions without a live leader.",
        sum(1 for partition in all_partitions if partition.leader not in alive),
    )
    yield one("kafka_server_raftmetrics_current_leader", "The leader of the metadata quorum.", quorum.leader_id)
    yield one("kafka_server_raftmetrics_current_epoch", "The epoch of the metadata quorum.", quorum.epoch)
    yield one("kafka_server_raftmetrics_high_watermark", "How far metadata is committed.", quorum.high_watermark)
    yield one(
        "kafka_log_logmanager_offlinelogdirectorycount", "Directories that have failed.", len(broker.store.offline)
    )
    yield Family(
        "kafka_server_socket_server_metrics_connection_count",
        "Connections that are open.",
        [Sample(listener.connection_count, (("listener", listener.name),)) for listener in listeners],
    )


def _is_under_replicated(partition: PartitionImage) -> bool:
    return len(partition.isr) < len(partition.replicas)


def _of_partitions(broker: Services) -> Iterator[Family]:
    """As kafka_exporter names them: every partition of the cluster, as the metadata has it."""
    topics = broker.image.topics.by_name
    names = sorted(topics)
    rows = [
        (partition, (("topic", name), ("partition", str(index))))
        for name in names
        for index, partition in enumerate(topics[name].partitions)
    ]
    yield Family(
        "kafka_topic_partitions",
        "Partitions of a topic.",
        [Sample(len(topics[name].partitions), (("topic", name),)) for name in names],
    )
    prefix = "kafka_topic_partition_"
    yield Family(f"{prefix}leader", "The broker that leads it.", (Sample(row.leader, at) for row, at in rows))
    yield Family(f"{prefix}replicas", "Its replicas.", (Sample(len(row.replicas), at) for row, at in rows))
    yield Family(f"{prefix}in_sync_replica", "Its replicas in sync.", (Sample(len(row.isr), at) for row, at in rows))
    yield Family(
        f"{prefix}leader_is_preferred",
        "Whether the first of its replicas leads it.",
        (Sample(int(row.leader == row.replicas[0]), at) for row, at in rows),
    )
    yield Family(
        f"{prefix}under_replicated_partition",
        "Whether a replica is not in sync.",
        (Sample(int(_is_under_replicated(row)), at) for row, at in rows),
    )


def _of_logs(broker: Services) -> Iterator[Family]:
    """The logs on this broker's disks, as Kafka's and as kafka_exporter names them."""
    logs = sorted(broker.store.logs.items())
    rows = [(log, (("topic", key.topic), ("partition", str(key.partition)))) for key, log in logs]
    led = [
        (log, at)
        for (key, log), (_, at) in zip(logs, rows, strict=True)
        if (topic := broker.image.topics.by_name.get(key.topic)) is not None
        and key.partition < len(topic.partitions)
        and topic.partitions[key.partition].leader == broker.broker_id
    ]
    yield Family("kafka_log_log_size", "Bytes of the log.", (Sample(log.size_bytes, at) for log, at in rows))
    yield Family(
        "kafka_log_log_logstartoffset", "Its first offset.", (Sample(log.log_start_offset, at) for log, at in rows)
    )
    yield Family("kafka_log_log_logendoffset", "Its next offset.", (Sample(log.end_offset, at) for log, at in rows))
    yield Family(
        "kafka_topic_partition_current_offset",
        "How far it may be read.",
        (Sample(log.high_watermark, at) for log, at in led),
    )
    yield Family(
        "kafka_topic_partition_oldest_offset",
        "Where reading can start.",
        (Sample(log.log_start_offset, at) for log, at in led),
    )
