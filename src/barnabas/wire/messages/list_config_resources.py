"""ListConfigResources: tools ask for the names of resources that have settings.

Version 1 covers more than client metrics, which version 0 lists.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, api=ApiKey.LIST_CONFIG_RESOURCES, versions=range(2), flexible=0):
    resource_types: list[int] = array(int8, since=1)


class ListConfigResourcesResponse(Message, api=ApiKey.LIST_CONFIG_RESOURCES, versions=range(2), flexible=0):
    class ConfigResource(Message):
        resource_name: str = string()
        resource_type: int = int8(since=1, default=16, ignorable=True)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
