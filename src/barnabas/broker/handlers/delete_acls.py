"""DeleteAcls: delete the ACLs that match the filters, and list them in the response.

Versions: 1–3.
Behaviour: each filter succeeds or fails alone. SECURITY_DISABLED without an authorizer.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.broker.access import permissions
from barnabas.broker.access.audit import name_of
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, FEW_ROWS_MAX, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.acls import delete_acls
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse


async def handle(request: Request, message: DeleteAclsRequest) -> DeleteAclsResponse:
    if request.broker.authorizer is None:
        raise ApiError(errors.SECURITY_DISABLED)
    return await submit(request.broker, lambda image, facts: delete_acls(image, message))


def refuse(message: DeleteAclsRequest, error: ApiError) -> DeleteAclsResponse:
    row = DeleteAclsResponse.DeleteAclsFilterResult
    return DeleteAclsResponse(
        filter_results=[row(error_code=error.error.code, error_message=error.message) for _ in message.filters]
    )


def _changed(message: Any) -> Iterable[str]:
    return [
        f"{row.principal_filter or '*'} {name_of(Operation, row.operation)} "
        f"{name_of(ResourceType, row.resource_type_filter)}:{row.resource_name_filter or '*'}"
        for row in message.filters
    ]


API: Final = Api(
    ApiKey.DELETE_ACLS,
    handle,
    at=CONTROLLER,
    portions=(Portions("filters", "filter_results", 1),),  # every filter looks at all ACLs
    rows_max=FEW_ROWS_MAX,
    needs=permissions.cluster(Operation.ALTER),
    refuse=refuse,
    is_forwarded=True,
    audit=_changed,
)
