"""AlterClientQuotas: an administrator sets or removes quotas of users, clients and addresses."""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, float64, int16, int32, string


class AlterClientQuotasRequest(Message, api=ApiKey.ALTER_CLIENT_QUOTAS, versions=range(2), flexible=1):
    class EntryData(Message):
        entity: list[AlterClientQuotasRequest.EntityData] = array("EntityData")
        ops: list[AlterClientQuotasRequest.OpData] = array("OpData")

    class EntityData(Message):
        entity_type: str = string()
        entity_name: str | None = string(nullable=True)

    class OpData(Message):
        key: str = string()
        value: float = float64()
        remove: bool = boolean()

    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()


class AlterClientQuotasResponse(Message, api=ApiKey.ALTER_CLIENT_QUOTAS, versions=range(2), flexible=1):
    class EntryData(Message):
        error_code: int = int16()
        error_message: str | None = string(nullable=True)
        entity: list[AlterClientQuotasResponse.EntityData] = array("EntityData")

    class EntityData(Message):
        entity_type: str = string()
        entity_name: str | None = string(nullable=True)

    throttle_time_ms: int = int32()
    entries: list[EntryData] = array(EntryData)
