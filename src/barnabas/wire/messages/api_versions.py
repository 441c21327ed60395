"""ApiVersions: the first question on a connection: which APIs, in which versions, and which features.

Version 3 is flexible and names the client's software, but its answer keeps the old response header; version 4 allows
features that start at level zero.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message, api=ApiKey.API_VERSIONS, versions=range(5), flexible=3):
    client_software_name: str = string(since=3, ignorable=True)
    client_software_version: str = string(since=3, ignorable=True)


class ApiVersionsResponse(Message, api=ApiKey.API_VERSIONS, versions=range(5), flexible=3):
    class ApiVersion(Message):
        api_key: int = int16()  # type: ignore[assignment, misc]
        min_version: int = int16()
        max_version: int = int16()

    class SupportedFeatureKey(Message):
        name: str = string()
        min_version: int = int16()
        max_version: int = int16()

    class FinalizedFeatureKey(Message):
        name: str = string()
        max_version_level: int = int16()
        min_version_level: int = int16()

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, since=3, ignorable=True, tag=0)
    finalized_features_epoch: int = int64(since=3, default=-1, ignorable=True, tag=1)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, since=3, ignorable=True, tag=2)
    zk_migration_ready: bool = boolean(since=3, ignorable=True, tag=3)
