"""AlterConfigs: replace all settings of a resource; kept for old clients.

Versions: 0–2.
Behaviour: what the request does not name goes back to its default.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import alter_configs
from barnabas.model.errors import ApiError
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


async def handle(request: Request, message: AlterConfigsRequest) -> AlterConfigsResponse:
    return await submit(request.broker, lambda image, facts: alter_configs(image, message, facts))


def refuse(message: AlterConfigsRequest, error: ApiError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in message.resources
        ]
    )
