"""DescribeClientQuotas: the quotas that are set, by a filter of users, client ids or addresses.

Versions: 0–1.
Behaviour: a component matches a name, the default, or whatever is set for its type; strict means no other types.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import describe_client_quotas
from barnabas.model.errors import ApiError
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse


def handle(request: Request, message: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    return describe_client_quotas(request.broker.image.client_quotas, message)


def refuse(message: DescribeClientQuotasRequest, error: ApiError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.error.code, error_message=error.message, entries=None)
