"""How share groups are run: the broker's settings, and what a group may set for itself (KIP-932, KIP-1240).

``broker/settings/broker.py`` takes the table into its own. The configuration of one group (resource GROUP) is checked
against :attr:`ShareGroupSettings.group_configs`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from barnabas.model.settings import InvalidSetting, Kind, Setting, SettingTable, Update, setting

READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"
LATEST: Final = "latest"
EARLIEST: Final = "earliest"
BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


def duration_ms(text: str) -> int | None:
    """The milliseconds of an ISO 8601 duration such as P1DT2H or PT0.5S; None if the text is not one."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()) or text[-1] in "tT":
        return None
    days, hours, minutes = (int(found[unit] or 0) for unit in ("days", "hours", "minutes"))
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + int(float(found["seconds"] or 0) * 1000)


def _reset_problem(value: str) -> str | None:
    if value in (LATEST, EARLIEST):
        return None
    if value.startswith(BY_DURATION) and duration_ms(value.removeprefix(BY_DURATION)) is not None:
        return None
    return f"{value!r} is not latest, earliest or by_duration:<ISO 8601 duration>"


class _Bounded(NamedTuple):
    """A setting that the broker gives a default and bounds, and that a group may set within these."""

    name: str
    default: int
    minimum: int
    maximum: int
    doc: str
    own_range: tuple[int, int | None]
    minimum_range: tuple[int, int | None]
    maximum_range: tuple[int, int | None]
    update: Update = Update.READ_ONLY

    def settings(self) -> tuple[Setting, ...]:
        rows = (
            (f"group.share.{self.name}", self.default, self.doc, self.own_range, self.update),
            (
                f"group.share.min.{self.name}",
                self.minimum,
                f"Lowest value of share.{self.name} of a group.",
                self.minimum_range,
                Update.READ_ONLY,
            ),
            (
                f"group.share.max.{self.name}",
                self.maximum,
                f"Highest value of share.{self.name} of a group.",
                self.maximum_range,
                Update.READ_ONLY,
            ),
        )
        return tuple(
            setting(name, Kind.INT, default, doc, minimum=low, maximum=high, update=update)
            for name, default, doc, (low, high), update in rows
        )


_ANY: Final = (1, None)
_BOUNDED: Final = (
    _Bounded(
        "session.timeout.ms",
        45_000,
        45_000,
        60_000,
        "Time without a heartbeat after which a member is removed.",
        _ANY,
        _ANY,
        _ANY,
    ),
    _Bounded(
        "heartbeat.interval.ms", 5_000, 5_000, 15_000, "Interval at which members send heartbeats.", _ANY, _ANY, _ANY
    ),
    _Bounded(
        "assignment.interval.ms",
        1_000,
        0,
        15_000,
        "Least time between two assignments of a group.",
        (0, None),
        (0, None),
        (0, None),
        Update.CLUSTER_WIDE,
    ),
    _Bounded(
        "record.lock.duration.ms",
        30_000,
        15_000,
        60_000,
        "Time that a member has to acknowledge an acquired record.",
        (1_000, 3_600_000),
        (1_000, 30_000),
        (30_000, 3_600_000),
    ),
    _Bounded(
        "delivery.count.limit",
        5,
        2,
        10,
        "Number of deliveries after which a record is archived.",
        (2, 10),
        (2, 5),
        (5, 25),
    ),
    _Bounded(
        "partition.max.record.locks",
        2_000,
        100,
        4_000,
        "Number of records in flight in one share-partition.",
        (100, 10_000),
        (100, 2_000),
        (2_000, 10_000),
    ),
)

SHARE_GROUP_SETTINGS: Final = SettingTable(
    (
        *(each for bounded in _BOUNDED for each in bounded.settings()),
        setting("group.share.max.size", Kind.INT, 200, "Number of members of one group.", minimum=1, maximum=1000),
        setting(
            "group.share.max.share.sessions", Kind.INT, 2_000, "Number of share sessions on one broker.", minimum=1
        ),
        setting("group.share.assignors", Kind.LIST, ("simple",), "Assignors of share groups.", choices=("simple",)),
        setting(
            "group.share.initialize.retry.interval.ms",
            Kind.INT,
            30_000,
            "Time after which an unfinished initialization of share-partitions is tried again.",
            minimum=1,
        ),
    )
)


def _group_configs(values: Mapping[str, Any]) -> SettingTable:
    """What a group may set for itself, within the bounds that the broker sets."""
    bounded = (
        setting(
            f"share.{each.name}",
            Kind.INT,
            values[f"group.share.{each.name}"],
            each.doc,
            minimum=values[f"group.share.min.{each.name}"],
            maximum=values[f"group.share.max.{each.name}"],
            synonyms=(f"group.share.{each.name}",),
        )
        for each in _BOUNDED
    )
    return SettingTable(
        (
            *bounded,
            setting(
                "share.auto.offset.reset",
                Kind.STRING,
                LATEST,
                "Where a new share-partition starts: latest, earliest or by_duration:<ISO 8601 duration>.",
                check=_reset_problem,
            ),
            setting(
                "share.isolation.level",
                Kind.STRING,
                READ_UNCOMMITTED,
                "Whether records of open and aborted transactions are delivered.",
                choices=(READ_UNCOMMITTED, READ_COMMITTED),
            ),
            setting(
                "share.renew.acknowledge.enable",
                Kind.BOOLEAN,
                True,
                "Whether members may renew the locks of acquired records.",
            ),
        )
    )


def _check(values: Mapping[str, Any]) -> None:
    for each in _BOUNDED:
        low, high = values[f"group.share.min.{each.name}"], values[f"group.share.max.{each.name}"]
        if not low <= values[f"group.share.{each.name}"] <= high:
            raise InvalidSetting(f"group.share.{each.name} must be between its minimum, {low}, and its maximum, {high}")
    if values["group.share.heartbeat.interval.ms"] >= values["group.share.session.timeout.ms"]:
        raise InvalidSetting("group.share.heartbeat.interval.ms must be below group.share.session.timeout.ms")
    if values["group.share.max.share.sessions"] < values["group.share.max.size"]:
        raise InvalidSetting("group.share.max.share.sessions must be at least group.share.max.size")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupSettings:
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    record_lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    partition_max_record_locks: int = 2_000
    auto_offset_reset: str = LATEST
    isolation_level: str = READ_UNCOMMITTED
    renew_acknowledge_enable: bool = True
    size_max: int = 200
    sessions_max: int = 2_000
    initialize_retry_interval_ms: int = 30_000
    step_bytes_max: int = 1_000_000  # size of the records of one step: they are one batch of the offsets topic
    group_configs: SettingTable = field(
        default_factory=lambda: _group_configs(SHARE_GROUP_SETTINGS.filled({})), compare=False
    )

    @classmethod
    def of(cls, given: Mapping[str, Any], *, step_bytes_max: int) -> Self:
        values = SHARE_GROUP_SETTINGS.filled(given)
        _check(values)
        return cls(
            **{each.name.replace(".", "_"): values[f"group.share.{each.name}"] for each in _BOUNDED},
            size_max=values["group.share.max.size"],
            sessions_max=values["group.share.max.share.sessions"],
            initialize_retry_interval_ms=values["group.share.initialize.retry.interval.ms"],
            step_bytes_max=step_bytes_max,
            group_configs=_group_configs(values),
        )

    def for_group(self, configs: Mapping[str, str]) -> Self:
        """With the configuration of one group. Bounds that the broker has narrowed since then apply."""
        changes: dict[str, Any] = {}
        for name, text in configs.items():
            if name in self.group_configs:
                known = self.group_configs[name]
                try:
                    value = known.parse(text)
                except InvalidSetting:
                    if known.kind is not Kind.INT:
                        continue
                    assert known.minimum is not None
                    assert known.maximum is not None
                    value = int(max(known.minimum, min(int(text), known.maximum)))
                changes[name.removeprefix("share.").replace(".", "_")] = value
        return replace(self, **changes) if changes else self
