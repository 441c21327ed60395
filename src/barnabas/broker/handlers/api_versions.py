"""ApiVersions: what this broker speaks, and the features of the cluster.

Versions: 0–4.
Behaviour: an unknown version is answered in the layout of version 0 with UNSUPPORTED_VERSION and the one range that
the client needs to ask again. Produce is announced from version 0 although 0–2 are refused (librdkafka infers the
message format from it). Before version 4 a feature whose minimum is 0 is left out, as old clients reject it.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.requests.api import CLIENT, CONTROLLER, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.features import SUPPORTED_FEATURES
from barnabas.metadata.features_image import GROUP_VERSION, SHARE_VERSION, TRANSACTION_VERSION, finalized
from barnabas.model import errors
from barnabas.transport.connection import Parts
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
SOFTWARE_SINCE: Final = 3
ZERO_MINIMUM_SINCE: Final = 4
# Clients change their ways when they see these features; each needs an API.
NEEDED_BY: Final = {
    TRANSACTION_VERSION: ApiKey.END_TXN,
    GROUP_VERSION: ApiKey.CONSUMER_GROUP_HEARTBEAT,
    SHARE_VERSION: ApiKey.SHARE_GROUP_HEARTBEAT,
}


def handle(request: Request, message: ApiVersionsRequest) -> ApiVersionsResponse:
    if request.version >= SOFTWARE_SINCE and not (
        SOFTWARE.fullmatch(message.client_software_name) and SOFTWARE.fullmatch(message.client_software_version)
    ):
        return ApiVersionsResponse(error_code=errors.INVALID_REQUEST.code)
    image = request.broker.controller.image if _is_controller(request) else request.broker.image
    levels = finalized(image.features)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in _versions(request)
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=levels.lowest, max_version=levels.highest)
            for name, levels in SUPPORTED_FEATURES.items()
            if _is_served(request, name) and (request.version >= ZERO_MINIMUM_SINCE or levels.lowest > 0)
        ],
        finalized_features_epoch=max(image.offset, 0),
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in sorted(levels.items())
            if level > 0 and _is_served(request, name)
        ],
    )


def _is_served(request: Request, feature: str) -> bool:
    """A feature whose API is not in the table of routes is not announced, whatever the cluster has finalized."""
    key = NEEDED_BY.get(feature)
    return key is None or any(served == key for served, _, _ in request.broker.served_versions)


def _is_controller(request: Request) -> bool:
    return request.broker.is_for_controllers(request.connection)


def _versions(request: Request) -> tuple[tuple[ApiKey, int, int], ...]:
    return request.broker.controller_versions if _is_controller(request) else request.broker.served_versions


def unsupported(request: Request) -> Parts:
    """The answer to a version from the future: nothing of its body is read."""
    low, high = next((low, high) for key, low, high in _versions(request) if key == ApiKey.API_VERSIONS)
    response = ApiVersionsResponse(
        error_code=errors.UNSUPPORTED_VERSION.code,
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=low, max_version=high)],
    )
    return request.encode(response, version=0)


API: Final = Api(ApiKey.API_VERSIONS, handle, at=CLIENT | CONTROLLER, needs=permissions.anyone)
