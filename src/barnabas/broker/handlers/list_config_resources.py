"""ListConfigResources: the resources that DescribeConfigs can describe.

Versions: 0–1 (0 lists client metrics only).
Behaviour: a request without types lists all resources.
Differs from Kafka: there are no client metrics subscriptions.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, FEW_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.configs_image import ResourceType
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

KNOWN: Final = (
    ResourceType.CLIENT_METRICS,
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.GROUP,
)


def handle(request: Request, message: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if request.version == 0:
        return ListConfigResourcesResponse()
    if any(asked not in KNOWN for asked in message.resource_types):
        raise ApiError(errors.UNSUPPORTED_VERSION)
    image = request.broker.image
    wanted = message.resource_types or KNOWN
    brokers = [str(node_id) for node_id in sorted(image.brokers)]
    names = {
        ResourceType.TOPIC: sorted(image.topics.by_name),
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.GROUP: sorted(
            resource.name for resource in image.configs.by_resource if resource.type == ResourceType.GROUP
        ),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in (ResourceType.GROUP, ResourceType.BROKER_LOGGER, ResourceType.BROKER, ResourceType.TOPIC)
            if kind in wanted
            for name in names[kind]
        ]
    )


API: Final = Api(
    ApiKey.LIST_CONFIG_RESOURCES,
    handle,
    at=CLIENT,
    rows_max=FEW_ROWS_MAX,
    needs=permissions.cluster(Operation.DESCRIBE_CONFIGS),
)
