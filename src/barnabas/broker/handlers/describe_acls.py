"""DescribeAcls: the ACLs that match a filter.

Versions: 1–3.
Behaviour: a filter of type MATCH finds every ACL that applies to a name. SECURITY_DISABLED without an authorizer.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, CONTROLLER, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.acls import describe_acls
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(request: Request, message: DescribeAclsRequest) -> DescribeAclsResponse:
    if request.broker.authorizer is None:
        raise ApiError(errors.SECURITY_DISABLED)
    return describe_acls(request.broker.image.security, message)


API: Final = Api(ApiKey.DESCRIBE_ACLS, handle, at=CLIENT | CONTROLLER, needs=permissions.cluster(Operation.DESCRIBE))
