"""What this broker knows of itself, under the names that public dashboards use: the cluster, its partitions, its logs.

These numbers are what the metadata, the logs and the listeners say at the moment of asking. What is counted on the way
of requests is in ``traffic_metrics``, the process and its loop in ``process_metrics``, groups in ``group_metrics``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.broker.metrics.cleaner import of_cleaner
from barnabas.broker.metrics.coordinators import of_group_work, of_loading
from barnabas.broker.metrics.groups import of_groups
from barnabas.broker.metrics.process import of_process
from barnabas.broker.metrics.traffic import TrafficSource, of_guests, of_requests
from barnabas.broker.requests.services import Services
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.topics_image import TopicImage
from barnabas.observe.metrics import COUNTER, Family, Labels, Sample, one
from barnabas.storage.log import PartitionLog
from barnabas.transport.listener import Listener

RUNNING: Final = 3  # Kafka's number for a broker that runs
EXPORTER: Final = "kafka_topic_partition_"
GROUP_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead")
LATE_MS: Final = 300_000  # as Kafka: so long after its time an open transaction is late


def add_sources(broker: Services, listeners: Iterable[Listener]) -> None:
    """Show all that is told here."""
    metrics = broker.observed.metrics
    metrics.add(lambda: _of_broker(broker))
    metrics.add(lambda: _of_controller(broker))
    metrics.add(lambda: _of_coordinators(broker))
    metrics.add(lambda: of_loading(broker))
    metrics.add(lambda: of_group_work(broker))
    metrics.add(lambda: _of_quorum(broker))
    metrics.add(lambda: _of_listeners(listeners))
    metrics.add(lambda: _of_partitions(broker))
    metrics.add(lambda: _of_led_partitions(broker))
    metrics.add(lambda: _of_logs(broker))
    metrics.add(TrafficSource(broker))
    metrics.add(lambda: of_requests(broker))
    metrics.add(lambda: of_guests(broker))
    metrics.add(lambda: of_process(broker))
    metrics.add(lambda: of_cleaner(broker))
    metrics.add(
        lambda: (
            Family(name, doc, (Sample(*sample) for sample in samples))
            for name, doc, samples in of_groups(broker.groups.lags)
        )
    )


def _of_broker(broker: Services) -> Iterator[Family]:
    image = broker.image
    here = sum(1 for partition in _all(broker) if broker.broker_id in partition.replicas)
    led = list(_led(broker))
    prefix = "kafka_server_replicamanager_"
    yield one("kafka_server_kafkaserver_brokerstate", "The state of this broker; 3 is running.", RUNNING)
    yield one(f"{prefix}partitioncount", "Partitions with a replica here.", here)
    yield one(f"{prefix}leadercount", "Partitions led here.", len(led))
    yield one(
        f"{prefix}underreplicatedpartitions",
        "Partitions led here with a replica that is not in sync.",
        sum(1 for partition, *_ in led if _is_under_replicated(partition)),
    )
    yield one(
        f"{prefix}underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
        sum(1 for partition, minimum, _ in led if len(partition.isr) < minimum),
    )
    yield one(
        f"{prefix}atminisrpartitioncount",
        "Partitions led here with just as many replicas in sync as min.insync.replicas.",
        sum(1 for partition, minimum, _ in led if len(partition.isr) == minimum),
    )
    yield one(
        f"{prefix}offlinereplicacount",
        "Replicas that should be here and are not: their directory has failed.",
        sum(1 for topic in image.topics.by_name.values() for index in _missing(broker, topic)),
    )
    yield one("kafka_brokers", "Brokers of the cluster that are alive.", len(_alive(broker)))
    yield Family(
        "kafka_broker_info",
        "A broker of the cluster, and where it is.",
        [
            Sample(1, (("id", str(node_id)), ("address", _address(broker, node_id))))
            for node_id in sorted(image.brokers)
        ],
    )
    yield one(
        "kafka_log_logmanager_offlinelogdirectorycount", "Directories that have failed.", len(broker.store.offline)
    )


def _address(broker: Services, node_id: int) -> str:
    for end_point in broker.image.brokers[node_id].end_points:
        return f"{end_point.host}:{end_point.port}"
    return ""


def _of_coordinators(broker: Services) -> Iterator[Family]:
    """Groups by state, and partitions whose readers wait too long for a transaction to end."""
    states = broker.groups.lags.states()
    prefix = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    yield one(prefix, "Groups whose coordinator is here.", states.total())
    for state in GROUP_STATES:
        yield one(f"{prefix}{state.lower()}", f"Those of them that are {state}.", states[state])
    late_ms = broker.settings.transactions.timeout_ms_max + LATE_MS
    now_ms = broker.world.clock.wall_ms()
    yield one(
        "kafka_server_replicamanager_partitionswithlatetransactionscount",
        "Partitions led here with a transaction that is open for longer than any may be.",
        sum(1 for log in _led_logs(broker) if log.producers.is_late(now_ms=now_ms, late_ms=late_ms)),
    )


def _led_logs(broker: Services) -> Iterator[PartitionLog]:
    for name, topic in broker.image.topics.by_name.items():
        for index, partition in enumerate(topic.partitions):
            if partition.leader == broker.broker_id:
                hosted = broker.replicas.hosted(name, topic.id, index)
                if hosted is not None:
                    yield hosted.log


def _of_controller(broker: Services) -> Iterator[Family]:
    if not broker.settings.cluster.is_controller:
        return
    image, alive = broker.image, _alive(broker)
    partitions = list(_all(broker))
    prefix = "kafka_controller_kafkacontroller_"
    is_active = int(broker.controller.is_active)
    yield one(f"{prefix}activecontrollercount", "Whether this node is the active controller.", is_active)
    yield one(
        f"{prefix}offlinepartitionscount",
        "Partitions without a live leader.",
        sum(1 for partition in partitions if partition.leader not in alive),
    )
    yield one(
        f"{prefix}preferredreplicaimbalancecount",
        "Partitions that are not led by the first of their replicas.",
        sum(1 for partition in partitions if partition.leader != partition.replicas[0]),
    )
    yield one(f"{prefix}globaltopiccount", "Topics of the cluster.", len(image.topics.by_name))
    yield one(f"{prefix}globalpartitioncount", "Partitions of the cluster.", len(partitions))
    yield one(f"{prefix}activebrokercount", "Brokers that are alive.", len(alive))
    yield one(f"{prefix}fencedbrokercount", "Brokers that are fenced.", len(image.brokers) - len(alive))
    yield one(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        "Leaders elected since the start that may not have everything.",
        broker.observed.elections.unclean_count,
        COUNTER,
    )


def _of_quorum(broker: Services) -> Iterator[Family]:
    quorum = broker.raft.describe()
    prefix = "kafka_server_raftmetrics_"
    is_voter = broker.broker_id in broker.raft.voters.ids
    state = "leader" if quorum.is_leader else "observer" if not is_voter else "follower"
    if not quorum.is_leader and quorum.leader_id < 0:
        state = "unattached"
    yield one(f"{prefix}current_leader", "The leader of the metadata quorum.", quorum.leader_id)
    yield one(f"{prefix}current_epoch", "The epoch of the metadata quorum.", quorum.epoch)
    yield Family(f"{prefix}current_state", "What this node is in it.", [Sample(1, (("current_state", state),))])
    yield one(f"{prefix}high_watermark", "How far metadata is committed.", broker.raft.high_watermark)
    yield one(f"{prefix}log_end_offset", "How far metadata is written here.", broker.raft.end_offset)
    yield one(
        f"{prefix}commit_latency_avg",
        "Milliseconds from writing metadata to its commit, of the last minute.",
        broker.observed.commits.latency_ms,
    )
    yield one(
        f"{prefix}append_records_rate",
        "Records of metadata per second, of the last minute.",
        broker.observed.commits.rate,
    )


def _of_listeners(listeners: Iterable[Listener]) -> Iterator[Family]:
    prefix = "kafka_server_socket_server_metrics_"

    def each(name: str, doc: str, values: Iterable[int], kind: str) -> Family:
        pairs = zip(listeners, values, strict=True)
        return Family(
            f"{prefix}{name}", doc, [Sample(value, (("listener", listener.name),)) for listener, value in pairs], kind
        )

    yield each("connection_count", "Connections that are open.", (each.connection_count for each in listeners), "gauge")
    yield each("connection_creation_total", "Connections taken.", (each.accepted_count for each in listeners), COUNTER)
    yield each(
        "connection_refused_total", "Connections turned away.", (each.refused_count for each in listeners), COUNTER
    )


# --- partitions of the metadata ---------------------------------------------------------------------------------------


def _all(broker: Services) -> Iterator[PartitionImage]:
    for topic in broker.image.topics.by_name.values():
        yield from topic.partitions


def _led(broker: Services) -> Iterator[tuple[PartitionImage, int, Labels]]:
    """The partitions led here, how many replicas each must have in sync, and where it is."""
    topics = broker.image.topics.by_name
    for name in sorted(topics):
        topic = topics[name]
        for index, partition in enumerate(topic.partitions):
            if partition.leader == broker.broker_id:
                hosted = broker.replicas.hosted(name, topic.id, index)
                minimum = 1 if hosted is None else hosted.log.settings.min_insync_replicas
                yield partition, min(minimum, len(partition.replicas)), _at(name, index)


def _missing(broker: Services, topic: TopicImage) -> Iterator[int]:
    for index, partition in enumerate(topic.partitions):
        if broker.broker_id in partition.replicas and broker.replicas.hosted(topic.name, topic.id, index) is None:
            yield index


def _alive(broker: Services) -> set[int]:
    return {node_id for node_id, node in broker.image.brokers.items() if not node.is_fenced}


def _is_under_replicated(partition: PartitionImage) -> bool:
    return len(partition.isr) < len(partition.replicas)


def _of_partitions(broker: Services) -> Iterator[Family]:
    """As kafka_exporter names them: every partition of the cluster, as the metadata has it."""
    topics = broker.image.topics.by_name
    names = sorted(topics)
    rows = [(partition, _at(name, index)) for name in names for index, partition in enumerate(topics[name].partitions)]
    yield Family(
        "kafka_topic_partitions",
        "Partitions of a topic.",
        [Sample(len(topics[name].partitions), (("topic", name),)) for name in names],
    )
    yield Family(f"{EXPORTER}leader", "The broker that leads it.", (Sample(row.leader, at) for row, at in rows))
    yield Family(f"{EXPORTER}replicas", "Its replicas.", (Sample(len(row.replicas), at) for row, at in rows))
    yield Family(f"{EXPORTER}in_sync_replica", "Its replicas in sync.", (Sample(len(row.isr), at) for row, at in rows))
    yield Family(
        f"{EXPORTER}leader_is_preferred",
        "Whether the first of its replicas leads it.",
        (Sample(int(row.leader == row.replicas[0]), at) for row, at in rows),
    )
    yield Family(
        f"{EXPORTER}under_replicated_partition",
        "Whether a replica is not in sync.",
        (Sample(int(_is_under_replicated(row)), at) for row, at in rows),
    )


def _at(topic: str, partition: int) -> Labels:
    return (("topic", topic), ("partition", str(partition)))


def _of_led_partitions(broker: Services) -> Iterator[Family]:
    """As Kafka's own metrics name them: the partitions led here."""
    rows = list(_led(broker))
    prefix = "kafka_cluster_partition_"
    yield Family(f"{prefix}replicascount", "Its replicas.", (Sample(len(row.replicas), at) for row, _, at in rows))
    yield Family(
        f"{prefix}insyncreplicascount", "Its replicas in sync.", (Sample(len(row.isr), at) for row, _, at in rows)
    )
    yield Family(
        f"{prefix}underreplicated",
        "Whether a replica is not in sync.",
        (Sample(int(_is_under_replicated(row)), at) for row, _, at in rows),
    )
    yield Family(
        f"{prefix}underminisr",
        "Whether fewer replicas are in sync than min.insync.replicas.",
        (Sample(int(len(row.isr) < minimum), at) for row, minimum, at in rows),
    )
    yield Family(
        f"{prefix}atminisr",
        "Whether just as many replicas are in sync as min.insync.replicas.",
        (Sample(int(len(row.isr) == minimum), at) for row, minimum, at in rows),
    )


def _of_logs(broker: Services) -> Iterator[Family]:
    """The logs on this broker's disks, as Kafka's and as kafka_exporter names them."""
    logs = sorted(broker.store.logs.items())
    rows = [(log, _at(key.topic, key.partition)) for key, log in logs]
    led = [
        (log, at)
        for (key, log), (_, at) in zip(logs, rows, strict=True)
        if (topic := broker.image.topics.by_name.get(key.topic)) is not None
        and key.partition < len(topic.partitions)
        and topic.partitions[key.partition].leader == broker.broker_id
    ]
    yield Family("kafka_log_log_size", "Bytes of the log.", (Sample(log.size_bytes, at) for log, at in rows))
    yield Family("kafka_log_log_numlogsegments", "Its segments.", (Sample(len(log.segments), at) for log, at in rows))
    yield Family(
        "kafka_log_log_logstartoffset", "Its first offset.", (Sample(log.log_start_offset, at) for log, at in rows)
    )
    yield Family("kafka_log_log_logendoffset", "Its next offset.", (Sample(log.end_offset, at) for log, at in rows))
    yield Family(
        f"{EXPORTER}current_offset", "How far it may be read.", (Sample(log.high_watermark, at) for log, at in led)
    )
    yield Family(
        f"{EXPORTER}oldest_offset", "Where reading can start.", (Sample(log.log_start_offset, at) for log, at in led)
    )
    faults = broker.store.faults
    yield Family(
        "barnabas_log_faulty",
        "Logs that are damaged (1) or offline (2); barnabas doctor shows why.",
        [Sample(2 if fault.is_offline else 1, _at(*fault.partition)) for fault in faults],
    )
    yield one("barnabas_log_faults_total", "Faults of logs that were found since the start.", faults.total, COUNTER)
