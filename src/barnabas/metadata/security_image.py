"""Who may do what, and by which credentials: access control entries, SCRAM credentials and delegation tokens.

Only kept here as the log has set them; the authorizer and the SASL mechanisms read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from immutables import Map

from barnabas.metadata.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message


class AccessControlEntry(NamedTuple):
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class DelegationToken(NamedTuple):
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


@dataclass(frozen=True, slots=True)
class SecurityImage:
    acls: Map[Uuid, AccessControlEntry] = field(default_factory=Map)
    scram: Map[tuple[int, str], ScramCredential] = field(default_factory=Map)  # by mechanism and user
    delegation_tokens: Map[str, DelegationToken] = field(default_factory=Map)

    def with_acl(self, record: AccessControlEntryRecord) -> SecurityImage:
        entry = AccessControlEntry(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        return SecurityImage(self.acls.set(record.id, entry), self.scram, self.delegation_tokens)

    def without_acl(self, record: RemoveAccessControlEntryRecord) -> SecurityImage:
        if record.id not in self.acls:
            raise Malformed(f"the access control entry {record.id} does not exist")
        return SecurityImage(self.acls.delete(record.id), self.scram, self.delegation_tokens)

    def with_scram(self, record: UserScramCredentialRecord) -> SecurityImage:
        credential = ScramCredential(
            bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
        )
        scram = self.scram.set((record.mechanism, record.name), credential)
        return SecurityImage(self.acls, scram, self.delegation_tokens)

    def without_scram(self, record: RemoveUserScramCredentialRecord) -> SecurityImage:
        key = (record.mechanism, record.name)
        if key not in self.scram:
            raise Malformed(f"the user {record.name} has no SCRAM credential to remove")
        return SecurityImage(self.acls, self.scram.delete(key), self.delegation_tokens)

    def with_token(self, record: DelegationTokenRecord) -> SecurityImage:
        token = DelegationToken(
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )
        return SecurityImage(self.acls, self.scram, self.delegation_tokens.set(record.token_id, token))

    def without_token(self, record: RemoveDelegationTokenRecord) -> SecurityImage:
        if record.token_id not in self.delegation_tokens:
            raise Malformed(f"the delegation token {record.token_id} does not exist")
        return SecurityImage(self.acls, self.scram, self.delegation_tokens.delete(record.token_id))

    def records(self) -> Iterator[Message]:
        for entry_id in sorted(self.acls):
            yield AccessControlEntryRecord(id=entry_id, **self.acls[entry_id]._asdict())
        for mechanism, name in sorted(self.scram):
            credential = self.scram[mechanism, name]
            yield UserScramCredentialRecord(name=name, mechanism=mechanism, **credential._asdict())
        for token_id in sorted(self.delegation_tokens):
            token = self.delegation_tokens[token_id]
            yield DelegationTokenRecord(token_id=token_id, **{**token._asdict(), "renewers": list(token.renewers)})
