"""AlterUserScramCredentials: set or remove the SCRAM credentials of users.

Versions: 0.
Behaviour: each user succeeds or fails alone; a new password is used from the next authentication on. The number of
iterations is 4096–16384.
Differs from Kafka: an empty salt or salted password is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.broker.access import permissions
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, FEW_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.scram import alter_user_scram_credentials
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)


async def handle(request: Request, message: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    return await submit(request.broker, lambda image, facts: alter_user_scram_credentials(image, message))


def refuse(message: AlterUserScramCredentialsRequest, error: ApiError) -> AlterUserScramCredentialsResponse:
    row = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    users = dict.fromkeys([*(entry.name for entry in message.deletions), *(entry.name for entry in message.upsertions)])
    return AlterUserScramCredentialsResponse(
        results=[row(user=user, error_code=error.error.code, error_message=error.message) for user in users]
    )


def _changed(message: Any) -> Iterable[str]:
    return [*(f"-{row.name}" for row in message.deletions), *(f"+{row.name}" for row in message.upsertions)]


API: Final = Api(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    handle,
    at=CONTROLLER,
    rows_max=FEW_ROWS_MAX,
    needs=permissions.cluster(Operation.ALTER),
    refuse=refuse,
    is_forwarded=True,
    audit=_changed,
)
