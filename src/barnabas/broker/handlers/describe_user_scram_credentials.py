"""DescribeUserScramCredentials: which users there are, and by which SCRAM mechanisms they can sign in.

Versions: 0.
Behaviour: no users named means all. Nothing secret is told.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import describe_user_scram_credentials
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)


def handle(request: Request, message: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    return describe_user_scram_credentials(request.broker.image.security, message)
