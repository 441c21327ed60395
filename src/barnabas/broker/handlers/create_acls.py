"""CreateAcls: add rules of who may do what.

Versions: 1–3.
Behaviour: each rule succeeds or fails alone; one that is there already is a success. Without an authorizer
SECURITY_DISABLED.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller.requests import fresh_ids, submit
from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import create_acls
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse


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
