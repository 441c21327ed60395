"""DescribeAcls: an administrator asks for the access rules that a filter matches."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, string


class DescribeAclsRequest(Message, api=ApiKey.DESCRIBE_ACLS, versions=range(1, 4), flexible=2):
    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable=True)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable=True)
    host_filter: str | None = string(nullable=True)
    operation: int = int8()
    permission_type: int = int8()


class DescribeAclsResponse(Message, api=ApiKey.DESCRIBE_ACLS, versions=range(1, 4), flexible=2):
    class DescribeAclsResource(Message):
        resource_type: int = int8()
        resource_name: str = string()
        pattern_type: int = int8(default=3)
        acls: list[DescribeAclsResponse.AclDescription] = array("AclDescription")

    class AclDescription(Message):
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
