"""The audit log: who changed what and who was refused what, with nothing secret and nothing forged."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from talk import Talk, creatable, fetch_request

from barnabas.security.plain import LOGIN_MODULE
from barnabas.testing import Broker
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "plain.sasl.jaas.config": f"{LOGIN_MODULE} required user_admin=admin-secret user_alice=alice-secret;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with Broker(settings=settings) as running:
        yield running


def signed_in(broker: Broker, user: str, *, client_id: str = "talk") -> Talk:
    talk = Talk(broker.bootstrap_servers, client_id=client_id)
    talk.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert talk.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}-secret".encode())).error_code == 0
    return talk


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    handler, audit = Handler(), logging.getLogger("barnabas.audit")
    audit.addHandler(handler)
    caplog.set_level(logging.INFO, logger="barnabas.audit")
    yield found
    audit.removeHandler(handler)


def test_a_change_is_told_with_who_asked_and_what_became_of_it(broker: Broker, lines: list[str], name: str) -> None:
    with signed_in(broker, "admin", client_id="tool") as admin:
        admin.ask(CreateTopicsRequest(topics=[creatable(name), creatable("not/allowed")]))
        admin.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)]))
    who = "principal=User:admin peer=127.0.0.1 client=tool"
    assert lines == [
        f'change api=CREATE_TOPICS {who} of="{name} not/allowed" failed=INVALID_TOPIC_EXCEPTION',
        f"change api=DELETE_TOPICS {who} of={name} failed=no",
    ]


def test_deleted_records_are_told_with_their_topic(broker: Broker, lines: list[str], name: str) -> None:
    row = DeleteRecordsRequest.DeleteRecordsPartition
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=[row(partition_index=0, offset=0)])
    with signed_in(broker, "admin", client_id="tool") as admin:
        admin.create(name)
        admin.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000))
    who = "principal=User:admin peer=127.0.0.1 client=tool"
    assert lines[-1] == f"change api=DELETE_RECORDS {who} of={name} failed=no"


def test_changes_are_told_without_anything_secret(broker: Broker, lines: list[str], name: str) -> None:
    config = IncrementalAlterConfigsRequest
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name="bob", mechanism=1, iterations=4096, salt=b"pepper-pepper", salted_password=b"hash-of-a-password"
    )
    acl = CreateAclsRequest.AclCreation(
        resource_type=2, resource_name=name, resource_pattern_type=3, principal="User:bob", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    entry = AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="bob")],
        ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1e6)],
    )
    with signed_in(broker, "admin") as admin:
        admin.create(name)
        admin.ask(
            config(
                resources=[
                    config.AlterConfigsResource(
                        resource_type=2,
                        resource_name=name,
                        configs=[config.AlterableConfig(name="retention.ms", value="31415926")],
                    )
                ]
            )
        )
        admin.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]))
        admin.ask(CreateAclsRequest(creations=[acl]))
        admin.ask(AlterClientQuotasRequest(entries=[entry]))
    text = "\n".join(lines)
    assert f"of=2/{name}:retention.ms" in text
    assert "of=+bob" in text
    assert f'of="ALLOW User:bob READ TOPIC:{name}"' in text
    assert 'of="user=bob:producer_byte_rate"' in text
    for secret in ("31415926", "pepper", "hash-of"):
        assert secret not in text


def test_what_is_refused_is_told_with_the_right_that_is_missing(broker: Broker, lines: list[str], name: str) -> None:
    with signed_in(broker, "admin") as admin:
        admin.create(name)
    lines.clear()
    with signed_in(broker, "alice", client_id="evil\nforged line \x1b[31m") as alice:
        alice.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)]))
        alice.ask(CreateTopicsRequest(topics=[creatable("mine")]))
    who = 'principal=User:alice peer=127.0.0.1 client="evil\\nforged line \\x1b[31m"'
    needed = "CREATE CLUSTER:kafka-cluster CREATE TOPIC:mine"
    assert lines == [
        f'access refused api=METADATA {who} rights="DESCRIBE TOPIC:{name}"',
        f'access refused api=CREATE_TOPICS {who} rights="{needed}"',
    ]


def test_a_consumer_that_asks_again_and_again_is_told_once(broker: Broker, lines: list[str], name: str) -> None:
    with signed_in(broker, "admin") as admin:
        admin.create(name)
    lines.clear()
    with signed_in(broker, "alice") as alice:
        for _ in range(5):
            alice.ask(fetch_request(name), 12)
    assert [line.partition(" principal")[0] for line in lines] == ["access refused api=FETCH"]


def test_lists_that_leave_something_out_are_no_refusal(broker: Broker, lines: list[str]) -> None:
    with signed_in(broker, "alice") as alice:
        alice.ask(ListGroupsRequest())
        alice.ask(MetadataRequest(topics=None))
    assert lines == []


def test_a_failed_sign_in_is_told_without_the_password(broker: Broker, lines: list[str]) -> None:
    with Talk(broker.bootstrap_servers) as talk:
        talk.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        talk.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0my-wrong-guess"))
    (line,) = lines
    assert line.startswith("sign-in failed peer=127.0.0.1 listener=SASL_PLAINTEXT mechanism=PLAIN user=alice reason=")
    assert "my-wrong-guess" not in line
