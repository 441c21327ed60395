"""AlterUserScramCredentials: an administrator sets or removes SCRAM credentials; passwords arrive salted and hashed."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, binary, int8, int16, int32, string


class AlterUserScramCredentialsRequest(Message, api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=range(1), flexible=0):
    class ScramCredentialDeletion(Message):
        name: str = string()
        mechanism: int = int8()

    class ScramCredentialUpsertion(Message):
        name: str = string()
        mechanism: int = int8()
        iterations: int = int32()
        salt: bytes = binary()
        salted_password: bytes = binary()

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResponse(
    Message, api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=range(1), flexible=0
):
    class AlterUserScramCredentialsResult(Message):
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)

    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
