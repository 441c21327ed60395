"""DeleteAcls: an administrator removes the access rules that filters match, and learns which they were."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, string


class DeleteAclsRequest(Message, api=ApiKey.DELETE_ACLS, versions=range(1, 4), flexible=2):
    class DeleteAclsFilter(Message):
        resource_type_filter: int = int8()
        resource_name_filter: str | None = string(nullable=True)
        pattern_type_filter: int = int8(default=3)
        principal_filter: str | None = string(nullable=True)
        host_filter: str | None = string(nullable=True)
        operation: int = int8()
        permission_type: int = int8()

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsResponse(Message, api=ApiKey.DELETE_ACLS, versions=range(1, 4), flexible=2):
    class DeleteAclsFilterResult(Message):
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = array("DeleteAclsMatchingAcl")

    class DeleteAclsMatchingAcl(Message):
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        resource_type: int = int8()
        resource_name: str = string()
        pattern_type: int = int8(default=3)
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()

    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)
