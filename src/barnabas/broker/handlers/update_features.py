"""UpdateFeatures: raise or lower the finalized level of features.

Versions: 0–2.
Behaviour: all updates of a request or none.
Differs from Kafka: nothing known.
"""

from __future__ import annotations

from barnabas.broker.controller.requests import submit
from barnabas.broker.requests.request import Request
from barnabas.metadata.controller import update_features
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


async def handle(request: Request, message: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    return await submit(request.broker, lambda image, facts: update_features(image, message, facts))
