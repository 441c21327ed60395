"""AlterConfigs: replace all settings of a resource at once; IncrementalAlterConfigs is the better way."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int8, int16, int32, string


class AlterConfigsRequest(Message, api=ApiKey.ALTER_CONFIGS, versions=range(3), flexible=2):
    class AlterConfigsResource(Message):
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[AlterConfigsRequest.AlterableConfig] = array("AlterableConfig")

    class AlterableConfig(Message):
        name: str = string()
        value: str | None = string(nullable=True)

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResponse(Message, api=ApiKey.ALTER_CONFIGS, versions=range(3), flexible=2):
    class AlterConfigsResourceResponse(Message):
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        resource_type: int = int8()
        resource_name: str = string()

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
