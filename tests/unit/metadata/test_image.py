"""The picture of the cluster: records in, the same picture from a snapshot, old pictures untouched."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata import records as r
from barnabas.metadata.configs_image import ConfigResource, ResourceType
from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import ImageBuilder, MetadataChanges
from barnabas.metadata.image_difference import difference
from barnabas.metadata.partition_image import TopicIdPartition
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message

TOPIC = Uuid(bytes(15) + b"\x77")
OTHER = Uuid(bytes(15) + b"\x78")


def partition_record(index: int, *, topic: Uuid = TOPIC, replicas: tuple[int, ...] = (0, 1)) -> r.PartitionRecord:
    return r.PartitionRecord(
        partition_id=index,
        topic_id=topic,
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[Uuid(bytes(15) + bytes((200 + replica,))) for replica in replicas],
    )


def everything(cluster: Any) -> ClusterImage:
    """One of each noun."""
    cluster.apply(
        r.TopicRecord(name="a.b", topic_id=TOPIC),
        r.ConfigRecord(resource_type=2, resource_name="a.b", name="retention.ms", value="7"),
        partition_record(0),
        partition_record(1, replicas=(1, 2)),
        r.TopicRecord(name="other", topic_id=OTHER),
        partition_record(0, topic=OTHER),
        r.PartitionChangeRecord(
            partition_id=1, topic_id=TOPIC, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
        ),
        r.ConfigRecord(resource_type=4, resource_name="1", name="x", value="y"),
        r.ConfigRecord(resource_type=32, resource_name="g", name="consumer.session.timeout.ms", value="1"),
        r.RegisterControllerRecord(
            controller_id=3000,
            incarnation_id=TOPIC,
            end_points=[r.RegisterControllerRecord.ControllerEndpoint(name="C", host="h", port=1, security_protocol=0)],
            features=[
                r.RegisterControllerRecord.ControllerFeature(
                    name="metadata.version", min_supported_version=7, max_supported_version=30
                )
            ],
        ),
        r.ClientQuotaRecord(
            entity=[
                r.ClientQuotaRecord.EntityData(entity_type="user", entity_name=None),
                r.ClientQuotaRecord.EntityData(entity_type="client-id", entity_name="c"),
            ],
            key="producer_byte_rate",
            value=10.5,
        ),
        r.ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=3000),
        r.AccessControlEntryRecord(id=TOPIC, resource_type=2, resource_name="*", principal="User:x", host="*"),
        r.UserScramCredentialRecord(
            name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        ),
        r.DelegationTokenRecord(owner="User:o", requester="User:r", renewers=["User:n"], token_id="t"),
        r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, fenced=1, cordoned_log_dirs=[TOPIC]),
        r.FeatureLevelRecord(name="group.version", feature_level=0),
        r.ZkMigrationStateRecord(zk_migration_state=0),
        r.NoOpRecord(),
    )
    image: ClusterImage = cluster.image
    return image


def from_snapshot(image: ClusterImage) -> ClusterImage:
    return EMPTY.apply_all(
        [r.decode_record(r.encode_record(record)) for record in image.records()], base_offset=0, epoch=1
    )


def without_place(image: ClusterImage) -> ClusterImage:
    builder = ImageBuilder(image)
    builder.apply(r.NoOpRecord(), 0)
    return builder.build(epoch=0)


def test_a_snapshot_gives_the_same_picture(cluster: Any) -> None:
    image = everything(cluster)
    assert without_place(from_snapshot(image)) == without_place(image)
    assert len(image.security.scram) == len(image.security.acls) == len(image.security.delegation_tokens) == 1
    assert image.next_producer_id == 3000


def test_a_snapshot_begins_with_the_metadata_version_and_keeps_kafkas_order(cluster: Any) -> None:
    records = list(everything(cluster).records())
    assert records[0] == r.FeatureLevelRecord(name="metadata.version", feature_level=30)
    kinds = list(dict.fromkeys(type(record) for record in records))
    assert kinds == [
        r.FeatureLevelRecord,
        r.RegisterBrokerRecord,
        r.RegisterControllerRecord,
        r.TopicRecord,
        r.PartitionRecord,
        r.ConfigRecord,
        r.ClientQuotaRecord,
        r.ProducerIdsRecord,
        r.AccessControlEntryRecord,
        r.UserScramCredentialRecord,
        r.DelegationTokenRecord,
    ]


def test_an_empty_cluster_has_an_empty_snapshot() -> None:
    assert list(EMPTY.records()) == []
    assert EMPTY.is_empty


def test_a_picture_never_changes(cluster: Any) -> None:
    before = everything(cluster)
    copy = from_snapshot(before)
    cluster.apply(
        r.RemoveTopicRecord(topic_id=TOPIC),
        r.UnregisterBrokerRecord(broker_id=0, broker_epoch=100),
        r.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        r.RemoveAccessControlEntryRecord(id=TOPIC),
        r.RemoveDelegationTokenRecord(token_id="t"),
    )
    assert without_place(before) == without_place(copy)
    assert cluster.image != before
    assert cluster.image.topic("a.b") is None
    assert not cluster.image.configs.of_topic("a.b")
    assert 0 not in cluster.image.brokers
    assert not cluster.image.security.scram


def test_removing_a_topic_leaves_no_trace_in_the_indexes(cluster: Any) -> None:
    before = cluster.image
    cluster.apply(r.TopicRecord(name="a.b", topic_id=TOPIC), partition_record(0), partition_record(1))
    index = cluster.image.topics.index
    assert [key.partition for key in index.of_broker(0)] == [0, 1]
    assert index.leaderships[0] == 2
    assert cluster.image.topics.collisions["a_b"] == ("a.b",)
    cluster.apply(r.RemoveTopicRecord(topic_id=TOPIC))
    assert cluster.image.topics == before.topics


def test_a_change_moves_epochs_and_indexes(cluster: Any) -> None:
    cluster.apply(r.TopicRecord(name="t", topic_id=TOPIC), partition_record(0))
    cluster.apply(r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[1], leader=1))
    partition = cluster.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch, partition.isr) == (1, 1, 1, (1,))
    index = cluster.image.topics.index
    assert list(index.of_broker(0)) == []
    assert list(index.imbalanced) == [TopicIdPartition(TOPIC, 0)]
    assert not index.has_leaderships(0)
    assert index.has_leaderships(1)


def test_isr_changes_alone_keep_the_leader_epoch(cluster: Any) -> None:
    cluster.apply(r.TopicRecord(name="t", topic_id=TOPIC), partition_record(0))
    cluster.apply(r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[0]))
    partition = cluster.partition("t")
    assert (partition.leader_epoch, partition.partition_epoch) == (0, 1)


def test_partitions_of_a_batch_may_come_in_any_order(cluster: Any) -> None:
    cluster.apply(
        r.TopicRecord(name="t", topic_id=TOPIC), partition_record(2), partition_record(0), partition_record(1)
    )
    assert len(cluster.image.topic("t").partitions) == 3


def test_clearing_eligible_leaders_is_a_change_of_the_partition(cluster: Any) -> None:
    everything(cluster)
    assert cluster.partition("a.b", 1).elr == (1,)
    epoch = cluster.partition("a.b", 1).partition_epoch
    by_topic = cluster.image.apply(r.ClearElrRecord(topic_name="a.b"), cluster.image.offset + 1)
    by_all = cluster.image.apply(r.ClearElrRecord(topic_name=""), cluster.image.offset + 1)
    assert by_topic == by_all
    partition = by_all.partition("a.b", 1)
    assert (partition.elr, partition.last_known_elr, partition.partition_epoch) == ((), (), epoch + 1)
    assert not by_all.topics.index.with_elr


@pytest.mark.parametrize(
    "record",
    [
        partition_record(0),
        r.PartitionChangeRecord(partition_id=9, topic_id=OTHER),
        r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC),
        r.RemoveTopicRecord(topic_id=TOPIC),
        r.TopicRecord(name="there", topic_id=TOPIC),
        r.TopicRecord(name="new", topic_id=OTHER),
        r.UnregisterBrokerRecord(broker_id=0, broker_epoch=1),
        r.FenceBrokerRecord(id=9, epoch=1),
        r.BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=100, fenced=7),
        r.RemoveAccessControlEntryRecord(id=TOPIC),
        r.RemoveUserScramCredentialRecord(name="nobody", mechanism=1),
        r.RemoveDelegationTokenRecord(token_id="none"),
        r.ClearElrRecord(topic_name="none"),
        r.EndTransactionRecord(),
        r.AbortTransactionRecord(),
        partition_record(5, topic=OTHER),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_that_contradicts_the_picture_is_refused(cluster: Any, record: Message) -> None:
    cluster.apply(r.TopicRecord(name="there", topic_id=OTHER), partition_record(0, topic=OTHER))
    with pytest.raises(Malformed):
        cluster.apply(record)


def test_what_is_no_metadata_record_is_refused() -> None:
    with pytest.raises(Malformed):
        EMPTY.apply(r.RegisterBrokerRecord.BrokerEndpoint(), 0)


def test_fencing_in_all_its_forms(cluster: Any) -> None:
    for record, is_fenced in (
        (r.FenceBrokerRecord(id=0, epoch=100), True),
        (r.UnfenceBrokerRecord(id=0, epoch=100), False),
        (r.BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=100, fenced=1), True),
        (r.BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=100), True),
        (r.BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=100, fenced=-1), False),
    ):
        cluster.apply(record)
        assert cluster.image.brokers[0].is_fenced is is_fenced
    cluster.apply(
        r.BrokerRegistrationChangeRecord(broker_id=0, broker_epoch=100, in_controlled_shutdown=1, log_dirs=[OTHER])
    )
    assert not cluster.image.is_active(0)
    assert cluster.image.brokers[0].directories == (OTHER,)
    assert not cluster.image.brokers[0].has_online(TOPIC)


def test_an_aborted_transaction_never_was(cluster: Any) -> None:
    before = cluster.image
    cluster.apply(r.BeginTransactionRecord(name="x"), r.TopicRecord(name="t", topic_id=TOPIC), partition_record(0))
    assert cluster.image.transaction_base is not None
    assert cluster.image.topic("t") is not None
    cluster.apply(partition_record(1), r.AbortTransactionRecord())
    assert without_place(cluster.image) == without_place(before)
    assert cluster.image.offset > before.offset


def test_a_transaction_within_one_batch_counts_once_it_ends(cluster: Any) -> None:
    cluster.apply(
        r.TopicRecord(name="first", topic_id=OTHER),
        partition_record(0, topic=OTHER),
        r.BeginTransactionRecord(),
        r.TopicRecord(name="t", topic_id=TOPIC),
        partition_record(0),
        r.EndTransactionRecord(),
    )
    assert cluster.image.transaction_base is None
    assert set(cluster.image.topics.by_name) == {"first", "t"}
    with pytest.raises(Malformed):
        cluster.apply(r.BeginTransactionRecord(), r.BeginTransactionRecord())


def changes_of(image: ClusterImage, *records: Message) -> tuple[ClusterImage, MetadataChanges]:
    builder = ImageBuilder(image)
    for offset, record in enumerate(records, image.offset + 1):
        builder.apply(record, offset)
    return builder.build(epoch=1), builder.changes


def test_changes_name_what_was_touched_and_nothing_else(cluster: Any) -> None:
    everything(cluster)
    old = cluster.image
    new, changes = changes_of(
        old,
        r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[0]),
        r.RemoveTopicRecord(topic_id=OTHER),
        r.ConfigRecord(resource_type=2, resource_name="a.b", name="retention.ms", value=None),
        r.UnfenceBrokerRecord(id=2, epoch=102),
        r.FeatureLevelRecord(name="group.version", feature_level=1),
    )
    assert changes == MetadataChanges(
        deleted_topics=(old.topics.by_id[OTHER],),
        changed_partitions=(TopicIdPartition(TOPIC, 0),),
        changed_configs=(ConfigResource(ResourceType.TOPIC, "a.b"),),
        changed_brokers=(2,),
        has_new_features=True,
    )
    assert difference(old, new) == changes


def test_a_topic_that_came_and_went_is_no_change(cluster: Any) -> None:
    records = (r.TopicRecord(name="t", topic_id=TOPIC), partition_record(0), r.RemoveTopicRecord(topic_id=TOPIC))
    assert changes_of(cluster.image, *records)[1] == MetadataChanges()
    first_image, first = changes_of(cluster.image, *records[:2])
    assert first + changes_of(first_image, *records[2:])[1] == MetadataChanges()


def test_aborted_changes_are_no_changes(cluster: Any) -> None:
    changes = changes_of(
        cluster.image,
        r.UnfenceBrokerRecord(id=1, epoch=101),
        r.BeginTransactionRecord(),
        r.TopicRecord(name="t", topic_id=TOPIC),
        r.AbortTransactionRecord(),
    )[1]
    assert changes == MetadataChanges(changed_brokers=(1,))


def test_applying_a_record_shares_what_it_does_not_touch(cluster: Any) -> None:
    everything(cluster)
    old = cluster.image
    new = old.apply(r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, isr=[0]), old.offset + 1)
    assert new.topics.by_id[OTHER] is old.topics.by_id[OTHER]
    assert new.topics.by_id[TOPIC].partitions[1] is old.topics.by_id[TOPIC].partitions[1]
    assert new.brokers is old.brokers
    assert new.configs is old.configs
