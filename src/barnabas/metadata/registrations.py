"""BrokerRegistration, ControllerRegistration and UnregisterBroker: who belongs to the cluster.

A broker is registered fenced, in a new epoch for every process; heartbeats unfence it (``heartbeats``). Whether the
process before it ended cleanly decides what of its replicas can still be trusted.
"""

from __future__ import annotations

from typing import TypeAlias

from barnabas.metadata.brokers_image import VersionRange
from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.features_image import METADATA_VERSION, finalized
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.leader_changes import without_broker
from barnabas.metadata.partition_image import is_reserved_directory
from barnabas.metadata.records import RegisterBrokerRecord, RegisterControllerRecord, UnregisterBrokerRecord
from barnabas.model.errors import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REGISTRATION,
    STALE_BROKER_EPOCH,
    UNSUPPORTED_VERSION,
    ApiError,
)
from barnabas.wire.message import Message
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from barnabas.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

NO_EPOCH = -2  # no broker claims it: a request that knows no earlier epoch says -1

_Request: TypeAlias = BrokerRegistrationRequest


def check_broker_epoch(image: ClusterImage, broker_id: int, epoch: int) -> None:
    """STALE_BROKER_EPOCH unless the broker speaks for its latest registration."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise ApiError(STALE_BROKER_EPOCH, f"broker {broker_id} is not registered")
    if broker.epoch != epoch:
        raise ApiError(STALE_BROKER_EPOCH, f"broker {broker_id} is in epoch {broker.epoch}, not {epoch}")


def register_broker(
    image: ClusterImage, request: BrokerRegistrationRequest, facts: Facts, *, has_session: bool
) -> Decision[BrokerRegistrationResponse]:
    """``has_session`` says that the process registered under this id was heard of just now."""
    if request.cluster_id != facts.cluster_id:
        raise ApiError(
            INCONSISTENT_CLUSTER_ID,
            f"this is the cluster {facts.cluster_id}, not {request.cluster_id}",
        )
    existing = image.brokers.get(request.broker_id)
    is_same_process = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and has_session and not is_same_process:
        raise ApiError(
            DUPLICATE_BROKER_REGISTRATION,
            f"broker {request.broker_id} is alive in another process; if that one has ended, wait until its session "
            "has run out",
        )
    if request.is_migrating_zk_broker:
        raise ApiError(BROKER_ID_NOT_REGISTERED, "brokers of ZooKeeper are not taken in")
    _check_directories(image, request)
    _check_features(image, request)
    record = _record(request)
    records: list[Message] = []
    if existing is not None and is_same_process:
        record.broker_epoch = existing.epoch
        record.fenced = existing.is_fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    else:
        record.broker_epoch = image.offset + 1
        previous_epoch = NO_EPOCH if existing is None else existing.epoch
        is_crash = image.has_elr and request.previous_broker_epoch != previous_epoch
        records += without_broker(image, facts.schema, request.broker_id, is_crash=is_crash)
    records.append(record)
    return Decision(records, BrokerRegistrationResponse(broker_epoch=record.broker_epoch))


def _record(request: _Request) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
        rack=request.rack,
        log_dirs=list(request.log_dirs),
    )


def _check_directories(image: ClusterImage, request: _Request) -> None:
    if not request.log_dirs:
        raise ApiError(INVALID_REGISTRATION, f"broker {request.broker_id} names no directory")
    if any(is_reserved_directory(directory) for directory in request.log_dirs):
        raise ApiError(INVALID_REGISTRATION, f"broker {request.broker_id} names a directory by a reserved id")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise ApiError(INVALID_REGISTRATION, f"broker {request.broker_id} names a directory twice")
    owners = {
        directory: broker.id
        for broker in image.brokers.values()
        if broker.id != request.broker_id
        for directory in broker.directories
    }
    for directory in request.log_dirs:
        if directory in owners:
            raise ApiError(
                INVALID_REGISTRATION,
                f"the directory {directory} is broker {owners[directory]}'s",
            )


def _check_features(image: ClusterImage, request: _Request) -> None:
    """The broker must know the finalized level of every feature, named or not."""
    supported = {
        feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in request.features
    }
    levels = finalized(image.features)
    for name in sorted({*supported, *levels}):
        lowest, highest = supported.get(name, (0, 0))
        level = levels.get(name, 0)
        if not lowest <= level <= highest and (name in supported or name != METADATA_VERSION):
            raise ApiError(
                UNSUPPORTED_VERSION,
                f"the cluster has {name} at level {level}, and broker {request.broker_id} has the levels "
                f"{VersionRange(lowest, highest)}",
            )
    if METADATA_VERSION not in supported:
        raise ApiError(
            INVALID_REGISTRATION, f"broker {request.broker_id} does not say which levels of {METADATA_VERSION} it has"
        )


def unregister_broker(
    image: ClusterImage, request: UnregisterBrokerRequest, facts: Facts
) -> Decision[UnregisterBrokerResponse]:
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        raise ApiError(BROKER_ID_NOT_REGISTERED, f"broker {request.broker_id} is not registered")
    records: list[Message] = [
        *without_broker(image, facts.schema, broker.id),
        UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch),
    ]
    return Decision(records, UnregisterBrokerResponse(error_message=None))


def register_controller(
    image: ClusterImage, request: ControllerRegistrationRequest
) -> Decision[ControllerRegistrationResponse]:
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in request.listeners
        ],
        features=[
            RegisterControllerRecord.ControllerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
    )
    return Decision([record], ControllerRegistrationResponse(error_message=None))
