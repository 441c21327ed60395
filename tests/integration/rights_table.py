"""What each API needs, as Kafka publishes it: one request of each, in its usual and in every other way."""

from __future__ import annotations

from collections.abc import Callable

from rights import GROUP, TOPIC, TXN, C, G, May, T, X
from share_rights import SHARE_NEEDS, share_requests
from talk import batch, creatable, fetch_request, produce_request

from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest


def requests() -> dict[ApiKey, Message]:
    """One request of each API that needs a right, about the things of this test."""
    config = IncrementalAlterConfigsRequest
    part = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    commit = OffsetCommitRequest
    return {
        ApiKey.PRODUCE: produce_request(TOPIC, batch(b"x")),
        ApiKey.FETCH: fetch_request(TOPIC),
        ApiKey.LIST_OFFSETS: ListOffsetsRequest(
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsRequest.ListOffsetsPartition()])
            ]
        ),
        ApiKey.METADATA: MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=TOPIC)]),
        ApiKey.OFFSET_FETCH: OffsetFetchRequest(
            groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=None)]
        ),
        ApiKey.FIND_COORDINATOR: FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]),
        ApiKey.JOIN_GROUP: JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer"),
        ApiKey.HEARTBEAT: HeartbeatRequest(group_id=GROUP, member_id="m"),
        ApiKey.LEAVE_GROUP: LeaveGroupRequest(group_id=GROUP),
        ApiKey.SYNC_GROUP: SyncGroupRequest(group_id=GROUP, member_id="m"),
        ApiKey.DESCRIBE_GROUPS: DescribeGroupsRequest(groups=[GROUP]),
        ApiKey.DELETE_GROUPS: DeleteGroupsRequest(groups_names=[GROUP]),
        ApiKey.CREATE_TOPICS: CreateTopicsRequest(topics=[creatable(TOPIC)]),
        ApiKey.DELETE_TOPICS: DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="rights-gone")]),
        ApiKey.DELETE_RECORDS: DeleteRecordsRequest(
            topics=[
                DeleteRecordsRequest.DeleteRecordsTopic(
                    name=TOPIC, partitions=[DeleteRecordsRequest.DeleteRecordsPartition(offset=0)]
                )
            ]
        ),
        ApiKey.INIT_PRODUCER_ID: InitProducerIdRequest(
            transactional_id=TXN, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
        ),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=TOPIC, partitions=[OffsetForLeaderEpochRequest.OffsetForLeaderPartition(leader_epoch=0)]
                )
            ]
        ),
        ApiKey.END_TXN: EndTxnRequest(transactional_id=TXN, producer_id=1),
        ApiKey.WRITE_TXN_MARKERS: WriteTxnMarkersRequest(
            markers=[
                WriteTxnMarkersRequest.WritableTxnMarker(
                    producer_id=77,
                    topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="rights-none", partition_indexes=[0])],
                )
            ]
        ),
        ApiKey.DESCRIBE_ACLS: DescribeAclsRequest(
            resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
        ),
        ApiKey.CREATE_ACLS: CreateAclsRequest(creations=[CreateAclsRequest.AclCreation()]),
        ApiKey.DELETE_ACLS: DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter()]),
        ApiKey.DESCRIBE_CONFIGS: DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name=TOPIC)]
        ),
        ApiKey.ALTER_CONFIGS: AlterConfigsRequest(
            resources=[AlterConfigsRequest.AlterConfigsResource(resource_type=2, resource_name=TOPIC)],
            validate_only=True,
        ),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: config(
            resources=[config.AlterConfigsResource(resource_type=4, resource_name="1")], validate_only=True
        ),
        ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsRequest(topics=None),
        ApiKey.CREATE_PARTITIONS: CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.CreatePartitionsTopic(name=TOPIC, count=9)], validate_only=True
        ),
        ApiKey.OFFSET_DELETE: OffsetDeleteRequest(group_id=GROUP),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: DescribeClientQuotasRequest(),
        ApiKey.ALTER_CLIENT_QUOTAS: AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequest.EntryData(
                    entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="nobody")],
                    ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", remove=True)],
                )
            ]
        ),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DescribeUserScramCredentialsRequest(users=None),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AlterUserScramCredentialsRequest(
            deletions=[AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="nobody", mechanism=1)]
        ),
        ApiKey.DESCRIBE_QUORUM: DescribeQuorumRequest(),
        ApiKey.UPDATE_FEATURES: UpdateFeaturesRequest(validate_only=True),
        ApiKey.ELECT_LEADERS: ElectLeadersRequest(
            topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="no-such-topic", partitions=[0])]
        ),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignmentsRequest(),
        ApiKey.ALTER_REPLICA_LOG_DIRS: AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                    path="/nowhere",
                    topics=[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="nothing", partitions=[0])],
                )
            ]
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsRequest(topics=None),
        ApiKey.UNREGISTER_BROKER: UnregisterBrokerRequest(broker_id=99),
        ApiKey.ADD_RAFT_VOTER: AddRaftVoterRequest(cluster_id="another", voter_id=1),
        ApiKey.REMOVE_RAFT_VOTER: RemoveRaftVoterRequest(cluster_id="another", voter_id=1),
        ApiKey.DESCRIBE_PRODUCERS: DescribeProducersRequest(
            topics=[DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])]
        ),
        ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactionsRequest(transactional_ids=[TXN]),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=-1),
        ApiKey.CONSUMER_GROUP_DESCRIBE: ConsumerGroupDescribeRequest(group_ids=[GROUP]),
        **share_requests(),
        ApiKey.LIST_CONFIG_RESOURCES: ListConfigResourcesRequest(),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsRequest.TopicRequest(name=TOPIC)]
        ),
        ApiKey.OFFSET_COMMIT: commit(
            group_id=GROUP,
            topics=[commit.OffsetCommitRequestTopic(name=TOPIC, partitions=[commit.OffsetCommitRequestPartition()])],
        ),
        ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommitRequest(
            transactional_id=TXN,
            group_id=GROUP,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[part()])],
        ),
        ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnRequest(transactional_id=TXN, group_id=GROUP),
        ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TXN,
            v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        ),
    }


# What Kafka's documentation says each needs; the rights of one row are needed together.
NEEDS: dict[ApiKey, list[tuple[Operation, ResourceType]]] = {
    ApiKey.PRODUCE: [(May.WRITE, T)],
    ApiKey.FETCH: [(May.READ, T)],
    ApiKey.LIST_OFFSETS: [(May.DESCRIBE, T)],
    ApiKey.METADATA: [(May.DESCRIBE, T)],
    ApiKey.OFFSET_COMMIT: [(May.READ, G), (May.READ, T)],
    ApiKey.OFFSET_FETCH: [(May.DESCRIBE, G)],
    ApiKey.FIND_COORDINATOR: [(May.DESCRIBE, G)],
    ApiKey.JOIN_GROUP: [(May.READ, G)],
    ApiKey.HEARTBEAT: [(May.READ, G)],
    ApiKey.LEAVE_GROUP: [(May.READ, G)],
    ApiKey.SYNC_GROUP: [(May.READ, G)],
    ApiKey.DESCRIBE_GROUPS: [(May.DESCRIBE, G)],
    ApiKey.DELETE_GROUPS: [(May.DELETE, G)],
    ApiKey.CREATE_TOPICS: [(May.CREATE, T)],
    ApiKey.DELETE_TOPICS: [(May.DELETE, T)],
    ApiKey.DELETE_RECORDS: [(May.DELETE, T)],
    ApiKey.INIT_PRODUCER_ID: [(May.WRITE, X)],
    ApiKey.OFFSET_FOR_LEADER_EPOCH: [(May.DESCRIBE, T)],
    ApiKey.ADD_PARTITIONS_TO_TXN: [(May.WRITE, X), (May.WRITE, T)],
    ApiKey.ADD_OFFSETS_TO_TXN: [(May.WRITE, X), (May.READ, G)],
    ApiKey.END_TXN: [(May.WRITE, X)],
    ApiKey.WRITE_TXN_MARKERS: [(May.CLUSTER_ACTION, C)],
    ApiKey.TXN_OFFSET_COMMIT: [(May.WRITE, X), (May.READ, G), (May.READ, T)],
    ApiKey.DESCRIBE_ACLS: [(May.DESCRIBE, C)],
    ApiKey.CREATE_ACLS: [(May.ALTER, C)],
    ApiKey.DELETE_ACLS: [(May.ALTER, C)],
    ApiKey.DESCRIBE_CONFIGS: [(May.DESCRIBE_CONFIGS, T)],
    ApiKey.ALTER_CONFIGS: [(May.ALTER_CONFIGS, T)],
    ApiKey.INCREMENTAL_ALTER_CONFIGS: [(May.ALTER_CONFIGS, C)],
    ApiKey.DESCRIBE_LOG_DIRS: [(May.DESCRIBE, C)],
    ApiKey.CREATE_PARTITIONS: [(May.ALTER, T)],
    ApiKey.OFFSET_DELETE: [(May.DELETE, G)],
    ApiKey.DESCRIBE_CLIENT_QUOTAS: [(May.DESCRIBE_CONFIGS, C)],
    ApiKey.ALTER_CLIENT_QUOTAS: [(May.ALTER_CONFIGS, C)],
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: [(May.DESCRIBE, C)],
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: [(May.ALTER, C)],
    ApiKey.DESCRIBE_QUORUM: [(May.DESCRIBE, C)],
    ApiKey.UPDATE_FEATURES: [(May.ALTER, C)],
    ApiKey.ELECT_LEADERS: [(May.ALTER, C)],
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: [(May.ALTER, C)],
    ApiKey.ALTER_REPLICA_LOG_DIRS: [(May.ALTER, C)],
    ApiKey.LIST_PARTITION_REASSIGNMENTS: [(May.DESCRIBE, C)],
    ApiKey.UNREGISTER_BROKER: [(May.ALTER, C)],
    ApiKey.ADD_RAFT_VOTER: [(May.ALTER, C)],
    ApiKey.REMOVE_RAFT_VOTER: [(May.ALTER, C)],
    ApiKey.DESCRIBE_PRODUCERS: [(May.READ, T)],
    ApiKey.DESCRIBE_TRANSACTIONS: [(May.DESCRIBE, X)],
    ApiKey.CONSUMER_GROUP_HEARTBEAT: [(May.READ, G)],
    ApiKey.CONSUMER_GROUP_DESCRIBE: [(May.DESCRIBE, G)],
    **SHARE_NEEDS,
    ApiKey.LIST_CONFIG_RESOURCES: [(May.DESCRIBE_CONFIGS, C)],
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: [(May.DESCRIBE, T)],
}
# These answer everybody; the lists among them leave out what may not be described.
FREE = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_TRANSACTIONS,
}
VERSIONS = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.METADATA: 12,
}


def described(kind: int, name: str) -> DescribeConfigsRequest:
    row = DescribeConfigsRequest.DescribeConfigsResource(resource_type=kind, resource_name=name)
    return DescribeConfigsRequest(resources=[row])


def altered(kind: int, name: str) -> IncrementalAlterConfigsRequest:
    row = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=name)
    return IncrementalAlterConfigsRequest(resources=[row], validate_only=True)


def replaced(kind: int, name: str) -> AlterConfigsRequest:
    row = AlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=name)
    return AlterConfigsRequest(resources=[row], validate_only=True)


def marked() -> WriteTxnMarkersRequest:
    found = requests()[ApiKey.WRITE_TXN_MARKERS]
    assert isinstance(found, WriteTxnMarkersRequest)
    return found


# A right that implies another does not take it away when it is denied.
IMPLIED = {
    "a topic described": May.DESCRIBE,
    "a group described": May.DESCRIBE,
    "settings of a topic": May.DESCRIBE_CONFIGS,
}
# APIs that are about several kinds of things, or allowed by one of several rights, in the other ways.
OTHER_WAYS: dict[str, tuple[Callable[[], Message], int | None, list[tuple[Operation, ResourceType]]]] = {
    "settings of a broker": (lambda: described(4, "1"), None, [(May.DESCRIBE_CONFIGS, C)]),
    "levels of loggers": (lambda: described(8, "1"), None, [(May.DESCRIBE_CONFIGS, C)]),
    "levels of loggers altered": (lambda: altered(8, "1"), None, [(May.ALTER_CONFIGS, C)]),
    "settings of a group": (lambda: described(32, GROUP), None, [(May.DESCRIBE_CONFIGS, G)]),
    "settings of a topic, by changing": (lambda: described(2, TOPIC), None, [(May.ALTER_CONFIGS, T)]),
    "change settings of a topic": (lambda: altered(2, TOPIC), None, [(May.ALTER_CONFIGS, T)]),
    "change settings of a group": (lambda: altered(32, GROUP), None, [(May.ALTER_CONFIGS, G)]),
    "replace settings of a broker": (lambda: replaced(4, "1"), None, [(May.ALTER_CONFIGS, C)]),
    "coordinator of a transaction": (
        lambda: FindCoordinatorRequest(key_type=1, coordinator_keys=[TXN]), None, [(May.DESCRIBE, X)],
    ),
    "coordinator of a group, before version 4": (
        lambda: FindCoordinatorRequest(key_type=0, key=GROUP), 3, [(May.DESCRIBE, G)],
    ),
    "make topics, as a right to the cluster": (
        lambda: CreateTopicsRequest(topics=[creatable(TOPIC)]), None, [(May.CREATE, C)],
    ),
    "markers, as an administrator": (marked, None, [(May.ALTER, C)]),
    "ids of idempotent producers, as a right to the cluster": (
        lambda: InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1), None,
        [(May.IDEMPOTENT_WRITE, C)],
    ),
    "ids of idempotent producers, by some topic": (
        lambda: InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1), None,
        [(May.WRITE, T)],
    ),
    "a topic described, by reading": (lambda: requests()[ApiKey.METADATA], 12, [(May.READ, T)]),
    "a topic described, by writing": (lambda: requests()[ApiKey.METADATA], 12, [(May.WRITE, T)]),
    "a topic described, by deleting": (lambda: requests()[ApiKey.METADATA], 12, [(May.DELETE, T)]),
    "a topic described, by altering": (lambda: requests()[ApiKey.METADATA], 12, [(May.ALTER, T)]),
    "a group described, by reading": (lambda: requests()[ApiKey.DESCRIBE_GROUPS], None, [(May.READ, G)]),
    "a group described, by deleting": (lambda: requests()[ApiKey.DESCRIBE_GROUPS], None, [(May.DELETE, G)]),
    "offsets of a group, before version 8": (
        lambda: OffsetFetchRequest(
            group_id=GROUP,
            topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
        ),
        7,
        [(May.DESCRIBE, G), (May.DESCRIBE, T)],
    ),
    "offsets of a group deleted": (
        lambda: OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                OffsetDeleteRequest.OffsetDeleteRequestTopic(
                    name=TOPIC, partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        ),
        None,
        [(May.DELETE, G), (May.READ, T)],
    ),
    "a member that subscribes": (
        lambda: ConsumerGroupHeartbeatRequest(
            group_id=GROUP, member_id="m", member_epoch=-1, subscribed_topic_names=[TOPIC]
        ),
        None,
        [(May.READ, G), (May.DESCRIBE, T)],
    ),
    "a batch of a transaction": (
        lambda: produce_request(
            TOPIC,
            batch(b"x", is_transactional=True, producer_id=7, producer_epoch=0, base_sequence=0),
            transactional_id=TXN,
        ),
        12,
        [(May.WRITE, X), (May.WRITE, T)],
    ),
}  # fmt: skip
