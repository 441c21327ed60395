"""A broker that asks for rights, and rules for the time of a test; what the tests of rights share."""

from __future__ import annotations

from typing import Any

from certificates import Authority
from talk import Talk

from barnabas.security.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from barnabas.security.plain import LOGIN_MODULE
from barnabas.testing import Broker
from barnabas.wire.message import Message
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest

TOPIC, GROUP, TXN = "rights-topic", "rights-group", "rights-txn"
T, G, C, X = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
NAMES = {T: TOPIC, G: GROUP, C: CLUSTER_NAME, X: TXN}
May = Operation
FAILED = {29, 30, 31, 53}
ANY_HOST = "*"
CERTIFIED = "User:CN=carol,O=Test"


def signed_in(broker: Broker, user: str, *, listener: str = "SASL_PLAINTEXT") -> Talk:
    talk = Talk(broker.address_of(listener))
    talk.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert talk.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}-secret".encode())).error_code == 0
    return talk


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


def guarded_settings(authority: Authority) -> dict[str, str]:
    """Three ways in, users with passwords, an administrator who may do everything."""
    users = " ".join(f"user_{name}={name}-secret" for name in ("admin", "alice", "bob"))
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f"{LOGIN_MODULE} required {users};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin; User:root",
        "ssl.keystore.location": str(authority.issue("/CN=localhost").store),
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "requested",
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
