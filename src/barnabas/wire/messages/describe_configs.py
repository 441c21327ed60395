"""DescribeConfigs: tools ask for the settings of topics, brokers and groups, with their origin.

Version 3 adds types and documentation.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int8, int16, int32, string


class DescribeConfigsRequest(Message, api=ApiKey.DESCRIBE_CONFIGS, versions=range(1, 5), flexible=4):
    class DescribeConfigsResource(Message):
        resource_type: int = int8()
        resource_name: str = string()
        configuration_keys: list[str] | None = array(string, nullable=True)

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(since=3)


class DescribeConfigsResponse(Message, api=ApiKey.DESCRIBE_CONFIGS, versions=range(1, 5), flexible=4):
    class DescribeConfigsResult(Message):
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = array("DescribeConfigsResourceResult")

    class DescribeConfigsResourceResult(Message):
        name: str = string()
        value: str | None = string(nullable=True)
        read_only: bool = boolean()
        config_source: int = int8(default=-1)
        is_sensitive: bool = boolean()
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = array("DescribeConfigsSynonym")
        config_type: int = int8(since=3, ignorable=True)
        documentation: str | None = string(since=3, nullable=True, ignorable=True)

    class DescribeConfigsSynonym(Message):
        name: str = string()
        value: str | None = string(nullable=True)
        source: int = int8()

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
