"""DescribeClientQuotas: tools ask for the quotas of users, clients and addresses that a filter matches."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, float64, int8, int16, int32, string


class DescribeClientQuotasRequest(Message, api=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=range(2), flexible=1):
    class ComponentData(Message):
        entity_type: str = string()
        match_type: int = int8()
        match: str | None = string(nullable=True)

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


class DescribeClientQuotasResponse(Message, api=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=range(2), flexible=1):
    class EntryData(Message):
        entity: list[DescribeClientQuotasResponse.EntityData] = array("EntityData")
        values: list[DescribeClientQuotasResponse.ValueData] = array("ValueData")

    class EntityData(Message):
        entity_type: str = string()
        entity_name: str | None = string(nullable=True)

    class ValueData(Message):
        key: str = string()
        value: float = float64()

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=True)
    entries: list[EntryData] | None = array(EntryData, nullable=True)
