"""AlterConfigs: replace all configs of a resource; IncrementalAlterConfigs is its successor.

Versions: 0–2.
Behaviour: a config that the request does not contain goes back to its default.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from barnabas.broker.access import audit, config_permissions
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, Api
from barnabas.broker.requests.portions import Portions
from barnabas.broker.requests.request import Request
from barnabas.broker.settings.own import at_home
from barnabas.metadata.configs import alter_configs
from barnabas.model.errors import ApiError
from barnabas.wire.api import ApiKey
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


API: Final = Api(
    ApiKey.ALTER_CONFIGS,
    handle,
    at=CONTROLLER,
    portions=(Portions("resources", "responses"),),
    needs=config_permissions.alter(refuse, AlterConfigsResponse),
    refuse=refuse,
    is_forwarded=True,
    audit=audit.configs,
    local_part=partial(at_home, refuse=refuse),
)
