"""DescribeClientQuotas: the quotas that match a filter of users, client ids or IP addresses.

Versions: 0–1.
Behaviour: a component matches a name, the default entity, or any name of its type; strict allows no other types.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, FEW_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.quotas import describe_client_quotas
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse


def handle(request: Request, message: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    return describe_client_quotas(request.broker.image.client_quotas, message)


def refuse(message: DescribeClientQuotasRequest, error: ApiError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.error.code, error_message=error.message, entries=None)


API: Final = Api(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    handle,
    at=CLIENT,
    rows_max=FEW_ROWS_MAX,
    needs=permissions.cluster(Operation.DESCRIBE_CONFIGS),
    refuse=refuse,
)
