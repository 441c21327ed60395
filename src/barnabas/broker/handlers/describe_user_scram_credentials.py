"""DescribeUserScramCredentials: the users with SCRAM credentials, and their mechanisms.

Versions: 0.
Behaviour: a request without users describes all users. The response contains nothing secret.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.metadata.scram import describe_user_scram_credentials
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


def handle(request: Request, message: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    return describe_user_scram_credentials(request.broker.image.security, message)


def refuse(message: DescribeUserScramCredentialsRequest, error: ApiError) -> DescribeUserScramCredentialsResponse:
    """The error for the whole, and rows with the error but without names, as Kafka answers."""
    row = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    return DescribeUserScramCredentialsResponse(
        error_code=error.error.code,
        error_message=error.message,
        results=[row(error_code=error.error.code, error_message=error.message) for _ in message.users or ()],
    )


API: Final = Api(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    handle,
    at=CLIENT,
    portions=(Portions("users", "results"),),
    needs=permissions.cluster(Operation.DESCRIBE),
    refuse=refuse,
)
