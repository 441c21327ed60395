"""BrokerHeartbeat: whether a broker is let in, kept out or sent off.

    fenced      -- caught up, wants in -->      unfenced
    unfenced    -- wants out, leads something -->  controlled shutdown
    controlled shutdown -- leads nothing, all others know --> shut down
    any         -- wants to be fenced, or is silent for a session --> fenced

A broker that was fenced while it shuts down may go at once. When a session ends is known to ``sessions``.
"""

from __future__ import annotations

import enum

from barnabas.metadata.brokers_image import FENCE, UNFENCE, BrokerImage
from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.leader_changes import with_broker, without_broker
from barnabas.metadata.records import BrokerRegistrationChangeRecord
from barnabas.metadata.registrations import check_broker_epoch
from barnabas.metadata.sessions import BrokerSessions, Session
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class BrokerState(enum.Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def state_of(broker: BrokerImage) -> BrokerState:
    if broker.is_fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def broker_heartbeat(
    image: ClusterImage, request: BrokerHeartbeatRequest, facts: Facts, *, sessions: BrokerSessions
) -> Decision[BrokerHeartbeatResponse]:
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    broker = image.brokers[request.broker_id]
    is_caught_up = request.current_metadata_offset >= broker.registered_offset
    old = state_of(broker)
    new = _next_state(image, broker, request, sessions, is_caught_up=is_caught_up)
    records: list[Message] = []
    if new is not old:
        if new is BrokerState.UNFENCED:
            records += unfence(image, broker, facts)
        elif new is BrokerState.CONTROLLED_SHUTDOWN:
            records += begin_controlled_shutdown(image, broker, facts)
        elif old is not BrokerState.FENCED:
            records += fence(image, broker, facts)
    # A broker on its way out has been taken from all its partitions just now.
    records += _offline_directories(image, broker, request, facts, is_gone=new is not old)
    cordoned = request.cordoned_log_dirs
    if cordoned is not None and tuple(cordoned) != broker.cordoned_directories:
        records.append(_change(broker, cordoned_log_dirs=list(cordoned)))
    response = BrokerHeartbeatResponse(
        is_caught_up=is_caught_up,
        is_fenced=new in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=new is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(records, response)


def _next_state(
    image: ClusterImage,
    broker: BrokerImage,
    request: BrokerHeartbeatRequest,
    sessions: BrokerSessions,
    *,
    is_caught_up: bool,
) -> BrokerState:
    state = state_of(broker)
    leads_something = image.topics.index.has_leaderships(broker.id)
    if state is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED if is_caught_up and not request.want_fence else BrokerState.FENCED
    if state is BrokerState.UNFENCED:
        if request.want_shut_down:
            can_stay = leads_something and not request.want_fence
            return BrokerState.CONTROLLED_SHUTDOWN if can_stay else BrokerState.SHUTDOWN_NOW
        return BrokerState.FENCED if request.want_fence else BrokerState.UNFENCED
    if leads_something or not sessions.may_shut_down(image, broker.id):
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.SHUTDOWN_NOW


def fence(image: ClusterImage, broker: BrokerImage, facts: Facts) -> list[Message]:
    """It leads nothing and is in sync with nothing until it is unfenced."""
    return [*without_broker(image, facts.schema, broker.id), _change(broker, fenced=FENCE)]


def unfence(image: ClusterImage, broker: BrokerImage, facts: Facts) -> list[Message]:
    return [_change(broker, fenced=UNFENCE), *with_broker(image, facts.schema, broker.id)]


def begin_controlled_shutdown(image: ClusterImage, broker: BrokerImage, facts: Facts) -> list[Message]:
    return [_change(broker, in_controlled_shutdown=1), *without_broker(image, facts.schema, broker.id)]


def fence_expired(image: ClusterImage, *, expired: Session, facts: Facts) -> Decision[None]:
    """The broker was silent for too long; nothing happens if it has registered anew or is fenced already."""
    broker = image.brokers.get(expired.broker_id)
    if broker is None or broker.epoch != expired.epoch or broker.is_fenced:
        return Decision([], None)
    return Decision(fence(image, broker, facts), None)


def _offline_directories(
    image: ClusterImage, broker: BrokerImage, request: BrokerHeartbeatRequest, facts: Facts, *, is_gone: bool
) -> list[Message]:
    lost = [directory for directory in broker.directories if directory in request.offline_log_dirs]
    if not lost:
        return []
    keys = [
        key
        for key in image.topics.index.of_broker(broker.id)
        if image.topics.partition(key).directory_of(broker.id) in lost
    ]
    records: list[Message] = [] if is_gone else [*without_broker(image, facts.schema, broker.id, keys)]
    left = [directory for directory in broker.directories if directory not in lost]
    return [*records, _change(broker, log_dirs=left)]


def _change(broker: BrokerImage, **values: object) -> BrokerRegistrationChangeRecord:
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    for name, value in values.items():
        setattr(record, name, value)
    return record
