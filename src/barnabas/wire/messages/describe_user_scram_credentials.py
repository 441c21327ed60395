"""DescribeUserScramCredentials: tools ask which SCRAM mechanisms users have; secrets are never told."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, string


class DescribeUserScramCredentialsRequest(
    Message, api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=range(1), flexible=0
):
    class UserName(Message):
        name: str = string()

    users: list[UserName] | None = array(UserName, nullable=True)


class DescribeUserScramCredentialsResponse(
    Message, api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=range(1), flexible=0
):
    class DescribeUserScramCredentialsResult(Message):
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = array("CredentialInfo")

    class CredentialInfo(Message):
        mechanism: int = int8()
        iterations: int = int32()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
