"""CreateAcls: add ACLs.

Versions: 1–3.
Behaviour: each ACL succeeds or fails alone; creating an ACL that exists is a success. SECURITY_DISABLED without an
authorizer.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.broker.access import permissions
from barnabas.broker.access.audit import name_of
from barnabas.broker.controller.requests import fresh_ids, submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.acls import create_acls
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse

PERMISSIONS: Final = {2: "DENY", 3: "ALLOW"}  # names of permission types in the audit log


async def handle(request: Request, message: CreateAclsRequest) -> CreateAclsResponse:
    if request.broker.authorizer is None:
        raise ApiError(errors.SECURITY_DISABLED)
    ids = fresh_ids(request.broker)
    return await submit(request.broker, lambda image, facts: create_acls(image, message, ids=ids))


def refuse(message: CreateAclsRequest, error: ApiError) -> CreateAclsResponse:
    row = CreateAclsResponse.AclCreationResult
    return CreateAclsResponse(
        results=[row(error_code=error.error.code, error_message=error.message) for _ in message.creations]
    )


def _changed(message: Any) -> Iterable[str]:
    return [
        f"{PERMISSIONS.get(row.permission_type, row.permission_type)} {row.principal} "
        f"{name_of(Operation, row.operation)} {name_of(ResourceType, row.resource_type)}:{row.resource_name}"
        for row in message.creations
    ]


API: Final = Api(
    ApiKey.CREATE_ACLS,
    handle,
    at=CONTROLLER,
    portions=(Portions("creations", "results"),),
    needs=permissions.cluster(Operation.ALTER),
    refuse=refuse,
    is_forwarded=True,
    audit=_changed,
)
