"""IncrementalAlterConfigs: set, delete, append to or subtract from single settings of a resource."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int8, int16, int32, string


class IncrementalAlterConfigsRequest(Message, api=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=range(2), flexible=1):
    class AlterConfigsResource(Message):
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = array("AlterableConfig")

    class AlterableConfig(Message):
        name: str = string()
        config_operation: int = int8()
        value: str | None = string(nullable=True)

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class IncrementalAlterConfigsResponse(Message, api=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=range(2), flexible=1):
    class AlterConfigsResourceResponse(Message):
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        resource_type: int = int8()
        resource_name: str = string()

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
