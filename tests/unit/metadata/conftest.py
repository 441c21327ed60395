"""Small clusters to decide upon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.config_schema import ConfigSchema
from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.features_image import SUPPORTED_FEATURES
from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.partition_image import PartitionImage
from barnabas.metadata.records import RegisterBrokerRecord, TopicRecord
from barnabas.metadata.topics import create_topics
from barnabas.model.ids import Uuid
from barnabas.model.settings import Kind, Setting, SettingTable, Update
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest

BROKER_SETTINGS = SettingTable(
    (
        Setting(name="log.retention.ms", kind=Kind.LONG, default=1, doc="", update=Update.CLUSTER_WIDE),
        Setting(name="message.max.bytes", kind=Kind.INT, default=1, doc="", update=Update.CLUSTER_WIDE, minimum=0),
        Setting(name="min.insync.replicas", kind=Kind.INT, default=1, doc="", update=Update.CLUSTER_WIDE, minimum=1),
        Setting(
            name="ssl.keystore.location",
            kind=Kind.STRING,
            default="",
            doc="",
            update=Update.PER_BROKER,
            per_listener=True,
        ),
        Setting(name="metric.reporters", kind=Kind.LIST, default=("a",), doc="", update=Update.CLUSTER_WIDE),
        Setting(name="log.dirs", kind=Kind.STRING, default="", doc=""),
    )
)
GROUP_SETTINGS = SettingTable(
    (Setting(name="consumer.session.timeout.ms", kind=Kind.INT, default=45000, doc="", minimum=1),)
)


def uuid(number: int) -> Uuid:
    return Uuid(number.to_bytes(16))


def directory(broker_id: int) -> Uuid:
    return uuid(1000 + broker_id)


def topic_ids(start: int = 5000) -> Iterator[Uuid]:
    number = start
    while True:
        number += 1
        yield uuid(number)


def broker_record(broker_id: int, *, rack: str | None = None, fenced: bool = False, epoch: int = 0) -> Message:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uuid(2000 + broker_id),
        broker_epoch=epoch or 100 + broker_id,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092 + broker_id, security_protocol=0)
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest
            )
            for name, levels in sorted(SUPPORTED_FEATURES.items())
        ],
        rack=rack,
        fenced=fenced,
        log_dirs=[directory(broker_id)],
    )


def applied(image: ClusterImage, records: Iterable[Message]) -> ClusterImage:
    return image.apply_all(records, base_offset=image.offset + 1, epoch=1)


class Cluster:
    """A picture that decisions are made upon and applied to."""

    uuid = staticmethod(uuid)
    directory = staticmethod(directory)
    broker_record = staticmethod(broker_record)
    applied = staticmethod(applied)

    def __init__(self, facts: Facts, broker_count: int) -> None:
        self.facts = facts
        self.image = applied(EMPTY, [*bootstrap_records(), *(broker_record(broker) for broker in range(broker_count))])
        self.topic_ids = topic_ids()

    def apply(self, *records: Message) -> None:
        self.image = applied(self.image, records)

    def decided(self, decision: Decision[object]) -> list[Message]:
        self.image = applied(self.image, decision.records)
        return decision.records

    def partition(self, name: str, index: int = 0) -> PartitionImage:
        partition = self.image.partition(name, index)
        assert partition is not None
        return partition

    def create(self, name: str, *assignments: list[int], configs: dict[str, str] | None = None) -> Uuid:
        """A topic with replicas by hand."""
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                        for index, replicas in enumerate(assignments)
                    ],
                    configs=[
                        CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                        for key, value in (configs or {}).items()
                    ],
                )
            ]
        )
        decision = create_topics(self.image, request, self.facts, topic_ids=self.topic_ids, seed=0)
        assert not decision.response.topics[0].error_code, decision.response
        records = self.decided(decision)
        assert isinstance(records[0], TopicRecord)
        return records[0].topic_id


@pytest.fixture
def facts() -> Facts:
    schema = ConfigSchema(node_id=0, broker_settings=BROKER_SETTINGS, group_settings=GROUP_SETTINGS)
    return Facts(cluster_id="cluster", node_id=0, schema=schema, num_partitions=3, default_replication_factor=2)


@pytest.fixture
def make_cluster(facts: Facts) -> Callable[[int], Cluster]:
    return lambda broker_count: Cluster(facts, broker_count)


@pytest.fixture
def cluster(facts: Facts) -> Cluster:
    """Three brokers, nothing else."""
    return Cluster(facts, 3)
