"""CreateAcls: an administrator adds access rules."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, string


class CreateAclsRequest(Message, api=ApiKey.CREATE_ACLS, versions=range(1, 4), flexible=2):
    class AclCreation(Message):
        resource_type: int = int8()
        resource_name: str = string()
        resource_pattern_type: int = int8(default=3)
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()

    creations: list[AclCreation] = array(AclCreation)


class CreateAclsResponse(Message, api=ApiKey.CREATE_ACLS, versions=range(1, 4), flexible=2):
    class AclCreationResult(Message):
        error_code: int = int16()
        error_message: str | None = string(nullable=True)

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)
