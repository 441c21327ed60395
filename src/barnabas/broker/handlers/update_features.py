"""UpdateFeatures: raise or lower the finalized level of features.

Versions: 0–2.
Behaviour: all updates of a request or none.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.access import permissions
from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.api import CONTROLLER, FEW_ROWS_MAX, Api
from barnabas.broker.requests.request import Request
from barnabas.metadata.features import update_features
from barnabas.security.acl import Operation
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


async def handle(request: Request, message: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    return await submit(request.broker, lambda image, facts: update_features(image, message, facts))


API: Final = Api(
    ApiKey.UPDATE_FEATURES,
    handle,
    at=CONTROLLER,
    rows_max=FEW_ROWS_MAX,
    needs=permissions.cluster(Operation.ALTER),
    is_forwarded=True,
    audit=lambda message: [row.feature for row in message.feature_updates],
)
