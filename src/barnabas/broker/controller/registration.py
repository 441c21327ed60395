"""What a node says of itself when it registers, as a broker and as a controller.

Sending it is ``lifecycle``'s and ``controller_membership``'s business. Features are those of this version of the code;
clients' listeners go with the broker, controllers' listeners with the controller.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.endpoints import Endpoint
from barnabas.metadata.features import SUPPORTED_FEATURES
from barnabas.model.ids import Uuid
from barnabas.storage.store import LogStore
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest

Bound = Mapping[str, tuple[str, int]]  # host and port by the name of the listener


def broker_registration(
    settings: BrokerSettings, store: LogStore, bound: Bound, *, cluster_id: str, incarnation_id: Uuid
) -> BrokerRegistrationRequest:
    request = BrokerRegistrationRequest
    return request(
        broker_id=settings.node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            request.Listener(
                name=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                security_protocol=_protocol(settings, endpoint),
            )
            for endpoint in settings.advertised_to_clients(bound)
        ],
        features=[
            request.Feature(name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest)
            for name, levels in SUPPORTED_FEATURES.items()
        ],
        rack=settings.broker_rack,
        log_dirs=[store.directory_ids[path] for path in sorted(store.directory_ids)],
        previous_broker_epoch=store.previous_broker_epoch,
    )


def controller_registration(
    settings: BrokerSettings, bound: Bound, *, incarnation_id: Uuid
) -> ControllerRegistrationRequest:
    request = ControllerRegistrationRequest
    return request(
        controller_id=settings.node_id,
        incarnation_id=incarnation_id,
        listeners=[
            request.Listener(
                name=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                security_protocol=_protocol(settings, endpoint),
            )
            for endpoint in settings.advertised_to_controllers(bound)
        ],
        features=[
            request.Feature(name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest)
            for name, levels in SUPPORTED_FEATURES.items()
        ],
    )


def _protocol(settings: BrokerSettings, endpoint: Endpoint) -> int:
    return settings.security.listeners[endpoint.name].protocol
