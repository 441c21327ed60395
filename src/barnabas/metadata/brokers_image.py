"""The brokers and controllers that have registered, and what their registrations say.

When a session ends and what follows from it is decided elsewhere (``sessions``, ``registrations``, ``heartbeats``).
Handlers read the end points from here, placement the racks, elections who is fenced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from immutables import Map

from barnabas.metadata.partition_image import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from barnabas.metadata.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from barnabas.model.errors import Malformed
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message

FENCE: Final = 1
UNFENCE: Final = -1


class EndPoint(NamedTuple):
    name: str  # of the listener
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    lowest: int
    highest: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.lowest <= level <= self.highest

    def __str__(self) -> str:
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    id: int
    epoch: int
    incarnation_id: Uuid
    end_points: tuple[EndPoint, ...]
    features: Map[str, VersionRange]
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[Uuid, ...]  # those that are online
    cordoned_directories: tuple[Uuid, ...] | None  # None until the broker has said
    # Where the registration lies in the log: a broker that has read so far may be unfenced. A snapshot does not keep
    # it, and who loads one has read further, so it takes no part in comparisons.
    registered_offset: int = field(compare=False)

    @property
    def is_active(self) -> bool:
        return not self.is_fenced and not self.in_controlled_shutdown

    @property
    def has_uncordoned_directories(self) -> bool:
        if not self.directories or self.cordoned_directories is None:
            return True
        return any(directory not in self.cordoned_directories for directory in self.directories)

    @property
    def default_directory(self) -> Uuid:
        """Where a new replica goes: a choice is the broker's own."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY

    def has_online(self, directory: Uuid) -> bool:
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        return not self.directories or directory in self.directories

    def end_point(self, listener: str) -> EndPoint | None:
        return next((end_point for end_point in self.end_points if end_point.name == listener), None)

    def record(self) -> RegisterBrokerRecord:
        return RegisterBrokerRecord(
            broker_id=self.id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[RegisterBrokerRecord.BrokerEndpoint(**point._asdict()) for point in self.end_points],
            features=[
                RegisterBrokerRecord.BrokerFeature(
                    name=name,
                    min_supported_version=self.features[name].lowest,
                    max_supported_version=self.features[name].highest,
                )
                for name in sorted(self.features)
            ],
            rack=self.rack,
            fenced=self.is_fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
            cordoned_log_dirs=None if self.cordoned_directories is None else list(self.cordoned_directories),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerImage:
    id: int
    incarnation_id: Uuid
    end_points: tuple[EndPoint, ...]
    features: Map[str, VersionRange]

    def record(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            end_points=[RegisterControllerRecord.ControllerEndpoint(**point._asdict()) for point in self.end_points],
            features=[
                RegisterControllerRecord.ControllerFeature(
                    name=name,
                    min_supported_version=self.features[name].lowest,
                    max_supported_version=self.features[name].highest,
                )
                for name in sorted(self.features)
            ],
        )


class BrokersBuilder:
    __slots__ = ("_brokers", "_controllers", "changed", "changed_controllers")

    def __init__(self, brokers: Map[int, BrokerImage], controllers: Map[int, ControllerImage]) -> None:
        self._brokers = brokers.mutate()
        self._controllers = controllers.mutate()
        self.changed: dict[int, None] = {}
        self.changed_controllers: dict[int, None] = {}

    def register(self, record: RegisterBrokerRecord, offset: int) -> None:
        self._put(
            BrokerImage(
                id=record.broker_id,
                epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                end_points=_end_points(record.end_points),
                features=_features(record.features),
                rack=record.rack,
                is_fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                directories=tuple(record.log_dirs),
                cordoned_directories=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
                registered_offset=offset,
            )
        )

    def unregister(self, record: UnregisterBrokerRecord) -> None:
        self._registered(record.broker_id, record.broker_epoch)
        del self._brokers[record.broker_id]
        self.changed[record.broker_id] = None

    def fence(self, record: FenceBrokerRecord) -> None:
        self._put(replace(self._registered(record.id, record.epoch), is_fenced=True))

    def unfence(self, record: UnfenceBrokerRecord) -> None:
        self._put(replace(self._registered(record.id, record.epoch), is_fenced=False))

    def change(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._registered(record.broker_id, record.broker_epoch)
        if record.fenced not in (FENCE, 0, UNFENCE) or record.in_controlled_shutdown not in (0, 1):
            raise Malformed(f"{record} means nothing")
        if record.fenced:
            broker = replace(broker, is_fenced=record.fenced == FENCE)
        if record.in_controlled_shutdown:
            broker = replace(broker, in_controlled_shutdown=True)
        if record.log_dirs:
            broker = replace(broker, directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = replace(broker, cordoned_directories=tuple(record.cordoned_log_dirs))
        self._put(broker)

    def register_controller(self, record: RegisterControllerRecord) -> None:
        self._controllers[record.controller_id] = ControllerImage(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            end_points=_end_points(record.end_points),
            features=_features(record.features),
        )
        self.changed_controllers[record.controller_id] = None

    def build(self) -> tuple[Map[int, BrokerImage], Map[int, ControllerImage]]:
        return self._brokers.finish(), self._controllers.finish()

    def _put(self, broker: BrokerImage) -> None:
        self._brokers[broker.id] = broker
        self.changed[broker.id] = None

    def _registered(self, broker_id: int, epoch: int) -> BrokerImage:
        broker = self._brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            raise Malformed(f"the broker {broker_id} is not registered in epoch {epoch}")
        return broker


def records(brokers: Map[int, BrokerImage], controllers: Map[int, ControllerImage]) -> Iterator[Message]:
    for broker_id in sorted(brokers):
        yield brokers[broker_id].record()
    for controller_id in sorted(controllers):
        yield controllers[controller_id].record()


_RecordEndPoint = RegisterBrokerRecord.BrokerEndpoint | RegisterControllerRecord.ControllerEndpoint
_RecordFeature = RegisterBrokerRecord.BrokerFeature | RegisterControllerRecord.ControllerFeature


def _end_points(end_points: Sequence[_RecordEndPoint]) -> tuple[EndPoint, ...]:
    return tuple(EndPoint(point.name, point.host, point.port, point.security_protocol) for point in end_points)


def _features(features: Sequence[_RecordFeature]) -> Map[str, VersionRange]:
    return Map(
        {
            feature.name: VersionRange(feature.min_supported_version, feature.max_supported_version)
            for feature in features
        }
    )
