"""What a client may do, as it is told when it asks: everything without an authorizer, else what the rules say."""

from __future__ import annotations

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from talk import Talk, creatable

from barnabas.broker.access.authorized_operations import OPERATIONS
from barnabas.broker.settings.security import STANDARD_AUTHORIZER
from barnabas.security.acl import Operation, PatternType, Permission, ResourceType
from barnabas.testing import Broker
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest

NOT_ASKED = -(2**31)


def operations(bits: int) -> set[Operation]:
    return {operation for operation in Operation if bits & 1 << operation}


def test_who_does_not_ask_is_not_told(talk: Talk, name: str) -> None:
    talk.create(name)
    asked = [MetadataRequest.MetadataRequestTopic(name=name)]
    assert talk.ask(MetadataRequest(topics=asked)).topics[0].topic_authorized_operations == NOT_ASKED
    assert talk.ask(DescribeClusterRequest()).cluster_authorized_operations == NOT_ASKED


def test_without_an_authorizer_everything_is_allowed(talk: Talk, name: str) -> None:
    talk.create(name)
    asked = [MetadataRequest.MetadataRequestTopic(name=name)]
    asking = MetadataRequest(
        topics=asked, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    answer = talk.ask(asking, 10)
    everything = {kind: set(OPERATIONS[kind]) for kind in OPERATIONS}
    assert operations(answer.topics[0].topic_authorized_operations) == everything[ResourceType.TOPIC]
    assert operations(answer.cluster_authorized_operations) == everything[ResourceType.CLUSTER]
    cluster = talk.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert operations(cluster.cluster_authorized_operations) == everything[ResourceType.CLUSTER]
    message = DescribeGroupsRequest(groups=["nobody"], include_authorized_operations=True)
    group = talk.ask(message, 5).groups[0]
    while group.error_code:  # the topic of groups is made when a coordinator is first looked for
        talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["nobody"]))
        group = talk.ask(message, 5).groups[0]
    assert operations(group.authorized_operations) == everything[ResourceType.GROUP]
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name)]
    described = talk.ask(DescribeTopicPartitionsRequest(topics=topics)).topics[0]
    assert operations(described.topic_authorized_operations) == everything[ResourceType.TOPIC]


def test_with_an_authorizer_only_what_is_allowed() -> None:
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:nobody-here"}
    rules = [
        (ResourceType.TOPIC, "t", Operation.READ, Permission.ALLOW),
        (ResourceType.TOPIC, "t", Operation.CREATE, Permission.ALLOW),
        (ResourceType.CLUSTER, "kafka-cluster", Operation.ALTER, Permission.ALLOW),
    ]
    with (
        Broker(settings={**settings, "super.users": "User:ANONYMOUS"}) as broker,
        Talk(broker.bootstrap_servers) as talk,
    ):
        made = talk.ask(
            CreateAclsRequest(
                creations=[
                    CreateAclsRequest.AclCreation(
                        resource_type=kind,
                        resource_name=name,
                        resource_pattern_type=PatternType.LITERAL,
                        principal="User:ANONYMOUS",
                        host="*",
                        operation=operation,
                        permission_type=permission,
                    )
                    for kind, name, operation, permission in rules
                ]
            )
        )
        assert [row.error_code for row in made.results] == [0, 0, 0]
        talk.ask(CreateTopicsRequest(topics=[creatable("t", 1)], timeout_ms=5000))
        authorizer = broker.node.services.authorizer
        assert authorizer is not None
        authorizer._super_users = frozenset()  # from here on the rules speak
        message = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name="t")],
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
        answer = talk.ask(message, 10)
        assert operations(answer.topics[0].topic_authorized_operations) == {
            Operation.READ,
            Operation.CREATE,
            Operation.DESCRIBE,
        }
        assert operations(answer.cluster_authorized_operations) == {Operation.ALTER, Operation.DESCRIBE}


def test_librdkafka_is_told_what_it_may_do_and_sets_what_it_sets_on_kafka(shared_broker: Broker, name: str) -> None:
    """What its own test 0081 asks of a cluster without rules, and of a broker's settings."""
    admin = AdminClient({"bootstrap.servers": shared_broker.bootstrap_servers, "log_level": 2})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)
    cluster = admin.describe_cluster(include_authorized_operations=True).result(20)
    assert {AclOperation.CREATE, AclOperation.ALTER, AclOperation.DESCRIBE} <= set(cluster.authorized_operations)
    topics = admin.describe_topics(TopicCollection([name]), include_authorized_operations=True)
    found = set(topics[name].result(20).authorized_operations)
    assert {each.name for each in found} == {each.name for each in OPERATIONS[ResourceType.TOPIC]}
    assert admin.describe_topics(TopicCollection([name]))[name].result(20).authorized_operations is None
    entry = ConfigEntry(
        "sasl.kerberos.min.time.before.relogin",
        "58000",
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(20)
    wanted = ConfigResource(ConfigResource.Type.BROKER, "1")
    described = admin.describe_configs([wanted])[wanted].result(20)
    assert described[entry.name].value == "58000"
