"""AlterClientQuotas: set or remove the quotas of users, client ids and IP addresses.

Versions: 0–1.
Behaviour: each entity succeeds or fails alone; a quota takes effect on a broker when the broker has applied the change.
Differs from Kafka: the entity of an address must be an address; a host name is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.broker.access import permissions
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.quotas import alter_client_quotas
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse


async def handle(request: Request, message: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    return await submit(request.broker, lambda image, facts: alter_client_quotas(image, message))


def refuse(message: AlterClientQuotasRequest, error: ApiError) -> AlterClientQuotasResponse:
    row = AlterClientQuotasResponse
    return row(
        entries=[
            row.EntryData(
                error_code=error.error.code,
                error_message=error.message,
                entity=[
                    row.EntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity
                ],
            )
            for entry in message.entries
        ]
    )


def _changed(message: Any) -> Iterable[str]:
    return [
        ",".join(f"{part.entity_type}={part.entity_name}" for part in row.entity)
        + ":"
        + ",".join(change.key for change in row.ops)
        for row in message.entries
    ]


API: Final = Api(
    ApiKey.ALTER_CLIENT_QUOTAS,
    handle,
    at=CONTROLLER,
    portions=(Portions("entries", "entries"),),
    needs=permissions.cluster(Operation.ALTER_CONFIGS),
    refuse=refuse,
    is_forwarded=True,
    audit=_changed,
)
