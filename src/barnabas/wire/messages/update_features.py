"""UpdateFeatures: an administrator raises or lowers the levels of features of the cluster.

Version 1 adds dry runs and the kind of downgrade; version 2 answers for the whole request.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int8, int16, int32, string


class UpdateFeaturesRequest(Message, api=ApiKey.UPDATE_FEATURES, versions=range(3), flexible=0):
    class FeatureUpdateKey(Message):
        feature: str = string()
        max_version_level: int = int16()
        allow_downgrade: bool = boolean(until=0)
        upgrade_type: int = int8(since=1, default=1)

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(since=1)


class UpdateFeaturesResponse(Message, api=ApiKey.UPDATE_FEATURES, versions=range(3), flexible=0):
    class UpdatableFeatureResult(Message):
        feature: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable=True)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, until=1, ignorable=True)
