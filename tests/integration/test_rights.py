"""Rights: what stays hidden from those who have none, clients with and without them, rules that come and go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from rights import CERTIFIED, FAILED, GROUP, TOPIC, TXN, C, G, Granted, May, T, codes, signed_in
from talk import Talk, batch, fetch_request, produce_request

from barnabas.model import errors
from barnabas.model.ids import ZERO_UUID
from barnabas.security.acl import PatternType, Permission
from barnabas.testing import Broker
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest

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


def test_who_does_not_sign_in_is_anonymous(guarded: Broker, grant: Granted) -> None:
    with Talk(guarded.address_of("PLAINTEXT")) as talk:
        assert talk.fetch(TOPIC).error_code == errors.TOPIC_AUTHORIZATION_FAILED.code
        grant(May.READ, T, principal="User:ANONYMOUS")
        assert talk.fetch(TOPIC).error_code == 0


def test_who_shows_a_certificate_is_its_subject(guarded: Broker, authority: Authority, grant: Granted) -> None:
    from confluent_kafka import Consumer, TopicPartition

    carol = authority.issue("/O=Test/CN=carol")
    grant(May.READ, T, principal=CERTIFIED)
    grant(May.READ, G, "none", principal=CERTIFIED)
    with signed_in(guarded, "admin") as admin:
        assert admin.produce(TOPIC, batch(b"for carol")).error_code == 0
        end = admin.offset(TOPIC, -1).offset
    consumer = Consumer(
        {
            "bootstrap.servers": guarded.address_of("SSL"),
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


def test_the_admin_client_of_others_makes_finds_and_removes_rules(guarded: Broker, grant: Granted) -> None:
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
            "bootstrap.servers": guarded.address_of("SASL_PLAINTEXT"),
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
