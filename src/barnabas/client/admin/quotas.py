"""Quotas as the admin client sees them: how much a user or a client may send, fetch and ask for.

An entity is named by what it is made of, as ``{"user": "ada", "client-id": None}``; None is the default of its kind.
The broker keeps and enforces quotas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.model.errors import ApiError
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

QuotaEntity: TypeAlias = Mapping[str, str | None]  # "user", "client-id" or "ip" -> whose; None: the default

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2


class Quota(NamedTuple):
    entity: dict[str, str | None]
    limits: dict[str, float]  # "producer_byte_rate", "consumer_byte_rate", "request_percentage" and the like


class QuotaAdmin(AdminCalls):
    async def describe_quotas(
        self, entity: QuotaEntity | None = None, *, kinds: tuple[str, ...] = (), strict: bool = False
    ) -> tuple[Quota, ...]:
        """The quotas of an entity, or of all that have one of these kinds in them; without either, all there are.

        With ``strict`` those that are made of more than was asked for are left out.
        """
        component = DescribeClientQuotasRequest.ComponentData
        components = [
            component(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
            for kind, name in (entity or {}).items()
        ] + [component(entity_type=kind, match_type=ANY, match=None) for kind in kinds]
        request = DescribeClientQuotasRequest(components=components, strict=strict)
        answer = await self._broker(None, request, DescribeClientQuotasResponse)
        error = problem(answer.error_code, answer.error_message, about="quotas")
        if error is not None:
            raise error
        return tuple(
            Quota(
                {part.entity_type: part.entity_name for part in entry.entity},
                {limit.key: limit.value for limit in entry.values},
            )
            for entry in answer.entries or ()
        )

    async def alter_quotas(
        self, entity: QuotaEntity, limits: Mapping[str, float | None], *, validate_only: bool = False
    ) -> None:
        """Set limits of one entity; None takes a limit away."""
        kind = AlterClientQuotasRequest
        entry = kind.EntryData(
            entity=[kind.EntityData(entity_type=part, entity_name=name) for part, name in entity.items()],
            ops=[
                kind.OpData(key=key, value=0.0 if limit is None else float(limit), remove=limit is None)
                for key, limit in limits.items()
            ],
        )
        answer = await self._controller(
            AlterClientQuotasRequest(entries=[entry], validate_only=validate_only), AlterClientQuotasResponse
        )
        for outcome in answer.entries:
            error: ApiError | None = problem(outcome.error_code, outcome.error_message, about=str(dict(entity)))
            if error is not None:
                raise error
