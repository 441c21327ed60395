"""IncrementalAlterConfigs: set, delete, append to and subtract from settings of topics and brokers.

Versions: 0–1.
Behaviour: each resource succeeds or fails alone; topics follow at once, brokers where a setting may change at run time.
Listeners and their keys are tried out, and levels of loggers changed, by the broker that they are about: listeners for
clients come, go and move, with what is set for them alone; those for controllers and for other brokers stay.
Differs from Kafka: a listener that cannot be opened is refused; Kafka takes the setting and logs the failure. One that
is added is registered at once unless ``advertised.listeners`` is set; Kafka names no broker to clients on it. One that
moves moves at once, or not at all if brokers reach each other by it; Kafka moves it at the next start.
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
from barnabas.metadata.configs import incremental_alter_configs
from barnabas.model.errors import ApiError
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(request: Request, message: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    return await submit(request.broker, lambda image, facts: incremental_alter_configs(image, message, facts))


def refuse(message: IncrementalAlterConfigsRequest, error: ApiError) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in message.resources
        ]
    )


API: Final = Api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    handle,
    at=CONTROLLER,
    portions=(Portions("resources", "responses"),),
    needs=config_permissions.alter(refuse, IncrementalAlterConfigsResponse),
    refuse=refuse,
    is_forwarded=True,
    audit=audit.configs,
    local_part=partial(at_home, refuse=refuse),
)
