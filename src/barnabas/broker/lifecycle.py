"""This broker's life in the cluster: it registers fenced, in a new epoch, and is let in once it has caught up.

The controller decides; this module asks. Here controller and broker share a process, so asking is a call.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.controller_requests import facts
from barnabas.broker.services import Services
from barnabas.metadata.controller import broker_heartbeat, register_broker
from barnabas.metadata.features import SUPPORTED_FEATURES
from barnabas.metadata.sessions import BrokerSessions
from barnabas.transport.listener import Listener
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest

SESSION_MS: Final = 9000


async def join(broker: Services, listeners: list[Listener]) -> int:
    """Register, catch up, be unfenced; answers the broker's epoch."""
    known = facts(broker)
    request = _registration(broker, listeners)
    registered = await broker.controller.submit(lambda image: register_broker(image, request, known, has_session=False))
    heartbeat = BrokerHeartbeatRequest(
        broker_id=broker.broker_id,
        broker_epoch=registered.broker_epoch,
        current_metadata_offset=broker.controller.image.offset,
    )
    sessions = BrokerSessions(timeout_ms=SESSION_MS)
    await broker.controller.submit(lambda image: broker_heartbeat(image, heartbeat, known, sessions=sessions))
    return registered.broker_epoch


def _registration(broker: Services, listeners: list[Listener]) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker.broker_id,
        cluster_id=broker.cluster_id,
        incarnation_id=broker.world.entropy.uuid(),
        listeners=[
            BrokerRegistrationRequest.Listener(
                name=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                security_protocol=broker.settings.security.listeners[endpoint.name].protocol,
            )
            for endpoint in broker.settings.advertised(
                {listener.name: (listener.host, listener.port) for listener in listeners}
            )
        ],
        features=[
            BrokerRegistrationRequest.Feature(
                name=name, min_supported_version=levels.lowest, max_supported_version=levels.highest
            )
            for name, levels in SUPPORTED_FEATURES.items()
        ],
        rack=broker.settings.broker_rack,
        log_dirs=[broker.store.directory_ids[path] for path in sorted(broker.store.directory_ids)],
        previous_broker_epoch=broker.store.previous_broker_epoch,
    )
