"""Rights: each API against the table that Kafka publishes, clients with and without them, and what stays hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from talk import Talk, batch, creatable, fetch_request, produce_request

from barnabas.broker.authorize import TABLE
from barnabas.broker.routes import ROUTES
from barnabas.model import errors
from barnabas.model.ids import ZERO_UUID
from barnabas.security.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from barnabas.security.plain import LOGIN_MODULE
from barnabas.testing import Broker
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message
from barnabas.wire.messages import request_of
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
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
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest

TOPIC, GROUP, TXN = "rights-topic", "rights-group", "rights-txn"
T, G, C, X = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
NAMES = {T: TOPIC, G: GROUP, C: CLUSTER_NAME, X: TXN}
May = Operation
FAILED = {29, 30, 31, 53}
ANY_HOST = "*"
CERTIFIED = "User:CN=carol,O=Test"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[Broker]:
    users = " ".join(f"user_{name}={name}-secret" for name in ("admin", "alice", "bob"))
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f"{LOGIN_MODULE} required {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin; User:root",
        "ssl.keystore.location": str(authority.issue("/CN=localhost").store),
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "requested",
    }
    with Broker(settings=settings) as running, signed_in(running, "admin") as admin:
        admin.create(TOPIC)
        yield running


def signed_in(broker: Broker, user: str) -> Talk:
    talk = Talk(broker.address_of("SASL_PLAINTEXT"))
    talk.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert talk.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}-secret".encode())).error_code == 0
    return talk


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Talk]:
    with signed_in(broker, "admin") as talk:
        yield talk


@pytest.fixture
def alice(broker: Broker) -> Iterator[Talk]:
    with signed_in(broker, "alice") as talk:
        yield talk


class Granted:
    """Rules for the time of a test."""

    def __init__(self, admin: Talk) -> None:
        self._admin = admin

    def __call__(
        self,
        operation: Operation,
        kind: ResourceType,
        name: str | None = None,
        *,
        principal: str = "User:alice",
        host: str = ANY_HOST,
        pattern: PatternType = PatternType.LITERAL,
        permission: Permission = Permission.ALLOW,
    ) -> None:
        row = CreateAclsRequest.AclCreation(
            resource_type=kind,
            resource_name=name or NAMES[kind],
            resource_pattern_type=pattern,
            principal=principal,
            host=host,
            operation=operation,
            permission_type=permission,
        )
        (result,) = self._admin.ask(CreateAclsRequest(creations=[row])).results
        assert result.error_code == 0, result

    def nothing(self) -> None:
        every = DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        assert self._admin.ask(DeleteAclsRequest(filters=[every])).filter_results[0].error_code == 0


@pytest.fixture
def grant(admin: Talk) -> Iterator[Granted]:
    granted = Granted(admin)
    granted.nothing()
    yield granted
    granted.nothing()


# --- the table --------------------------------------------------------------------------------------------------------


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
    ApiKey.LIST_PARTITION_REASSIGNMENTS: [(May.DESCRIBE, C)],
    ApiKey.UNREGISTER_BROKER: [(May.ALTER, C)],
    ApiKey.ADD_RAFT_VOTER: [(May.ALTER, C)],
    ApiKey.REMOVE_RAFT_VOTER: [(May.ALTER, C)],
    ApiKey.DESCRIBE_PRODUCERS: [(May.READ, T)],
    ApiKey.DESCRIBE_TRANSACTIONS: [(May.DESCRIBE, X)],
    ApiKey.CONSUMER_GROUP_HEARTBEAT: [(May.READ, G)],
    ApiKey.CONSUMER_GROUP_DESCRIBE: [(May.DESCRIBE, G)],
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


def codes(value: Any) -> set[int]:
    """Every error code anywhere in an answer."""
    found: set[int] = set()
    if isinstance(value, list):
        for each in value:
            found |= codes(each)
    elif isinstance(value, Message):
        for name in value.__slots__:
            inner = getattr(value, name)
            if name in ("error_code", "partition_error_code"):
                found.add(inner)
            found |= codes(inner)
    return found


def is_refused(talk: Talk, key: ApiKey) -> bool:
    return bool(codes(talk.ask(requests()[key], VERSIONS.get(key))) & FAILED)


def test_every_api_that_is_served_says_what_it_needs() -> None:
    assert set(ROUTES) <= set(TABLE)
    assert set(ROUTES) == set(NEEDS) | FREE
    assert set(requests()) == set(NEEDS)


def check_rights(
    refused: Callable[[Talk], bool],
    alice: Talk,
    admin: Talk,
    grant: Granted,
    needs: list[tuple[Operation, ResourceType]],
    names: dict[ResourceType, str],
    denied: Operation | None = None,
) -> None:
    """No rule, each right alone, all of them, a denial, a prefix, a wildcard, another address, a super user."""
    assert not refused(admin)  # a super user
    assert refused(alice)  # no rule
    for left_out in needs:
        for operation, kind in needs:
            if (operation, kind) != left_out:
                grant(operation, kind)
        assert refused(alice)  # one is missing
        grant.nothing()
    for operation, kind in needs:
        grant(operation, kind, names.get(kind))
    assert not refused(alice)  # allowed
    grant(denied or needs[0][0], needs[0][1], names.get(needs[0][1]), permission=Permission.DENY)
    assert refused(alice)  # a denial beats it
    grant.nothing()
    for operation, kind in needs:
        pattern = PatternType.LITERAL if kind is C else PatternType.PREFIXED
        grant(operation, kind, CLUSTER_NAME if kind is C else "rights", pattern=pattern)
    assert not refused(alice)  # by a prefix
    grant.nothing()
    for _, kind in needs:
        grant(May.ALL, kind, CLUSTER_NAME if kind is C else "*", principal="User:*", host="127.0.0.1")
    assert not refused(alice)  # everybody everything, from here
    grant.nothing()
    for _, kind in needs:
        grant(May.ALL, kind, CLUSTER_NAME if kind is C else "*", host="10.0.0.1")
    assert refused(alice)  # from elsewhere


@pytest.mark.parametrize("key", NEEDS, ids=lambda key: key.name)
def test_an_api_needs_just_what_the_table_says(alice: Talk, admin: Talk, grant: Granted, key: ApiKey) -> None:
    names = {T: "rights-gone"} if key is ApiKey.DELETE_TOPICS else {}
    check_rights(lambda talk: is_refused(talk, key), alice, admin, grant, NEEDS[key], names)


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
        lambda: produce_request(TOPIC, batch(b"x"), transactional_id=TXN), 12, [(May.WRITE, X), (May.WRITE, T)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_an_api_needs_what_the_table_says_in_every_other_way(
    alice: Talk, admin: Talk, grant: Granted, way: str
) -> None:
    make, version, needs = OTHER_WAYS[way]
    denied = IMPLIED.get(way.partition(", by ")[0]) if ", by " in way else None
    refused = lambda talk: bool(codes(talk.ask(make(), version)) & FAILED)  # noqa: E731
    check_rights(refused, alice, admin, grant, needs, {}, denied)


@pytest.mark.parametrize("key", sorted(set(ROUTES) - {ApiKey.SASL_HANDSHAKE}), ids=lambda key: ApiKey(key).name)
def test_a_refusal_is_an_answer_in_every_version(alice: Talk, grant: Granted, key: int) -> None:
    for version in ROUTES[key].versions:
        if key == ApiKey.PRODUCE:
            alice.ask(produce_request(TOPIC, batch(b"x")), version)
        else:
            alice.ask(request_of(ApiKey(key))(), version)
    assert alice.is_open


# --- what stays hidden ------------------------------------------------------------------------------------------------


def named(name: str) -> list[MetadataRequest.MetadataRequestTopic]:
    return [MetadataRequest.MetadataRequestTopic(name=name)]


@pytest.mark.parametrize("version", [0, 1, 4, 9, 12, 13])
def test_what_may_not_be_described_does_not_exist(alice: Talk, grant: Granted, version: int) -> None:
    for name in (TOPIC, "no-such-topic"):
        (row,) = alice.ask(MetadataRequest(topics=named(name)), version).topics
        assert row.error_code == errors.TOPIC_AUTHORIZATION_FAILED.code
        assert row.topic_id == ZERO_UUID
        assert not row.partitions
    everything = MetadataRequest(topics=[] if version == 0 else None)
    assert alice.ask(everything, version).topics == []
    grant(May.READ, T)
    assert [row.name for row in alice.ask(everything, version).topics] == [TOPIC]


def test_a_topic_named_by_its_id_is_hidden_too(alice: Talk, admin: Talk, grant: Granted) -> None:
    topic_id = admin.topic_id(TOPIC)
    asked = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic_id)]
    (row,) = alice.ask(MetadataRequest(topics=asked)).topics
    assert (row.error_code, row.name) == (errors.TOPIC_AUTHORIZATION_FAILED.code, None)
    produced = alice.ask(produce_request("", batch(b"x"), topic_id=topic_id), 13)
    assert codes(produced) == {errors.TOPIC_AUTHORIZATION_FAILED.code}
    fetched = alice.ask(fetch_request("", topic_id=topic_id), 13)
    assert codes(fetched) & FAILED == {errors.TOPIC_AUTHORIZATION_FAILED.code}
    deletion = [DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic_id)]
    assert codes(alice.ask(DeleteTopicsRequest(topics=deletion))) == {errors.TOPIC_AUTHORIZATION_FAILED.code}


def test_a_topic_is_made_on_demand_only_by_those_who_may_create_it(
    alice: Talk, grant: Granted, new_name: Callable[[], str]
) -> None:
    name = f"rights-{new_name()}"
    grant(May.DESCRIBE, T, "rights-", pattern=PatternType.PREFIXED)
    assert codes(alice.ask(MetadataRequest(topics=named(name)))) & FAILED == {errors.TOPIC_AUTHORIZATION_FAILED.code}
    grant(May.CREATE, T, "rights-", pattern=PatternType.PREFIXED)
    assert codes(alice.ask(MetadataRequest(topics=named(name)))) & FAILED == set()


def test_rows_of_one_request_are_refused_alone(
    alice: Talk, admin: Talk, grant: Granted, new_name: Callable[[], str]
) -> None:
    other = f"other-{new_name()}"
    admin.create(other)
    grant(May.WRITE, T)
    request = produce_request(TOPIC, batch(b"x"))
    request.topic_data += produce_request(other, batch(b"x")).topic_data
    answer = alice.ask(request, 12)
    assert {row.name: row.partition_responses[0].error_code for row in answer.responses} == {
        TOPIC: 0,
        other: errors.TOPIC_AUTHORIZATION_FAILED.code,
    }
    assert admin.offset(other, -1).offset == 0


def test_a_refused_batch_without_acks_closes_the_connection(alice: Talk, grant: Granted) -> None:
    alice.tell(produce_request(TOPIC, batch(b"x"), acks=0), 12)
    alice.until_closed()


def test_groups_that_may_not_be_described_are_not_listed(alice: Talk, admin: Talk, grant: Granted) -> None:
    commit = OffsetCommitRequest
    part = commit.OffsetCommitRequestPartition(committed_metadata="")
    admin.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
    topics = [commit.OffsetCommitRequestTopic(name=TOPIC, partitions=[part])]
    assert codes(admin.ask(commit(group_id=GROUP, topics=topics), 9)) == {0}
    assert GROUP in [row.group_id for row in admin.ask(ListGroupsRequest()).groups]
    assert alice.ask(ListGroupsRequest()).groups == []
    grant(May.READ, G)
    assert [row.group_id for row in alice.ask(ListGroupsRequest()).groups] == [GROUP]
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    assert alice.ask(OffsetFetchRequest(groups=[group])).groups[0].topics == []  # its topic is hidden still
    grant(May.DESCRIBE, T)
    assert len(alice.ask(OffsetFetchRequest(groups=[group])).groups[0].topics) == 1


def test_a_session_does_not_outlive_the_right_to_read(alice: Talk, grant: Granted) -> None:
    grant(May.READ, T)
    opened = alice.ask(fetch_request(TOPIC, session_epoch=0, session_id=0), 12)
    assert codes(opened) == {0}
    grant.nothing()
    again = fetch_request(TOPIC, session_epoch=1, session_id=opened.session_id)
    again.topics = []
    assert errors.TOPIC_AUTHORIZATION_FAILED.code in codes(alice.ask(again, 12))


# --- attacks ----------------------------------------------------------------------------------------------------------


def test_cve_2018_1288_a_client_that_poses_as_a_follower_is_refused(alice: Talk, grant: Granted) -> None:
    grant(May.READ, T)
    assert codes(alice.ask(fetch_request(TOPIC, replica_id=1), 12)) == {errors.CLUSTER_AUTHORIZATION_FAILED.code}


def test_cve_2018_17196_a_transactional_batch_needs_the_transactional_id_of_its_request(
    alice: Talk, admin: Talk, grant: Granted
) -> None:
    grant(May.WRITE, T)
    records = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    end = admin.offset(TOPIC, -1).offset
    assert codes(alice.ask(produce_request(TOPIC, records), 12)) != {0}
    named_txn = alice.ask(produce_request(TOPIC, records, transactional_id=TXN), 12)
    assert codes(named_txn) == {errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code}
    assert admin.offset(TOPIC, -1).offset == end


def test_an_idempotent_producer_needs_only_a_topic_that_it_may_write_to(alice: Talk, grant: Granted) -> None:
    request = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
    assert codes(alice.ask(request)) == {errors.CLUSTER_AUTHORIZATION_FAILED.code}
    grant(May.WRITE, T)
    assert codes(alice.ask(request)) == {0}
    grant(May.WRITE, T, "*", permission=Permission.DENY)
    assert codes(alice.ask(request)) == {errors.CLUSTER_AUTHORIZATION_FAILED.code}


# --- who is asking ----------------------------------------------------------------------------------------------------


def test_who_does_not_sign_in_is_anonymous(broker: Broker, grant: Granted) -> None:
    with Talk(broker.address_of("PLAINTEXT")) as talk:
        assert talk.fetch(TOPIC).error_code == errors.TOPIC_AUTHORIZATION_FAILED.code
        grant(May.READ, T, principal="User:ANONYMOUS")
        assert talk.fetch(TOPIC).error_code == 0


def test_who_shows_a_certificate_is_its_subject(broker: Broker, authority: Authority, grant: Granted) -> None:
    from confluent_kafka import Consumer, TopicPartition

    carol = authority.issue("/O=Test/CN=carol")
    grant(May.READ, T, principal=CERTIFIED)
    grant(May.READ, G, "none", principal=CERTIFIED)
    with signed_in(broker, "admin") as admin:
        assert admin.produce(TOPIC, batch(b"for carol")).error_code == 0
        end = admin.offset(TOPIC, -1).offset
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address_of("SSL"),
            "group.id": "none",
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.certificate),
            "ssl.certificate.location": str(carol.certificate),
            "ssl.key.location": str(carol.key),
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, end - 1)])
        message = consumer.poll(15)
        assert message is not None
        assert message.error() is None
        assert message.value() == b"for carol"
    finally:
        consumer.close()


# --- rules ------------------------------------------------------------------------------------------------------------


def test_the_admin_client_of_others_makes_finds_and_removes_rules(broker: Broker, grant: Granted) -> None:
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
    )
    from confluent_kafka.admin import (
        ResourceType as Kind,
    )

    client = AdminClient(
        {
            "bootstrap.servers": broker.address_of("SASL_PLAINTEXT"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "admin-secret",
        }
    )
    rule = AclBinding(
        Kind.TOPIC, "orders-", ResourcePatternType.PREFIXED, "User:bob", "*", AclOperation.READ, AclPermissionType.ALLOW
    )
    client.create_acls([rule])[rule].result(15)
    asked = AclBindingFilter(
        Kind.TOPIC, "orders-1", ResourcePatternType.MATCH, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert client.describe_acls(asked).result(15) == [rule]
    assert client.delete_acls([asked])[asked].result(15) == [rule]
    assert client.describe_acls(asked).result(15) == []


@pytest.mark.parametrize(
    "change",
    [
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"permission_type": 1},
        {"resource_name": ""},
        {"resource_type": 4, "resource_name": "other"},
        {"principal": "alice"},
    ],
    ids=str,
)
def test_a_rule_that_means_nothing_is_refused(admin: Talk, change: dict[str, Any]) -> None:
    values = {
        "resource_type": 2,
        "resource_name": "x",
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    row = CreateAclsRequest.AclCreation(**{**values, **change})
    (result,) = admin.ask(CreateAclsRequest(creations=[row])).results
    assert result.error_code == errors.INVALID_REQUEST.code


def test_without_an_authorizer_rules_are_refused_and_everybody_may_do_everything(talk: Talk, name: str) -> None:
    talk.create(name)
    assert talk.produce(name, batch(b"x")).error_code == 0
    every = DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)
    for version in DescribeAclsRequest.versions:
        assert talk.ask(every, version).error_code == errors.SECURITY_DISABLED.code
        row = CreateAclsRequest.AclCreation()
        assert codes(talk.ask(CreateAclsRequest(creations=[row]), version)) == {errors.SECURITY_DISABLED.code}


def test_everybody_may_do_everything_to_what_no_rule_is_about_if_the_broker_says_so() -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker(settings=settings) as running, Talk(running.bootstrap_servers) as talk:
        talk.create("free")
        assert talk.produce("free", batch(b"x")).error_code == 0
        Granted(talk)(May.READ, T, "free", principal="User:someone")
        assert talk.produce("free", batch(b"x")).error_code == errors.TOPIC_AUTHORIZATION_FAILED.code


def test_a_right_to_the_cluster_does_not_let_a_consumer_read(alice: Talk, grant: Granted) -> None:
    grant(May.CLUSTER_ACTION, C)
    (topic,) = alice.ask(fetch_request(TOPIC), 12).responses
    assert [row.error_code for row in topic.partitions] == [errors.TOPIC_AUTHORIZATION_FAILED.code]
    assert not topic.partitions[0].records


def test_rules_survive_a_restart(tmp_path: Path) -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    every = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    for expected in (0, 1):
        with Broker(data_dir=tmp_path / "data", settings=settings) as running, Talk(running.bootstrap_servers) as talk:
            assert len(talk.ask(every).resources) == expected
            Granted(talk)(May.READ, T)
