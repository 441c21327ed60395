"""How groups of the consumer protocol are run: what a broker's settings say, and what a group may have otherwise.

Declared here, beside what they govern; ``broker/settings/broker.py`` takes the table into its own, and what is set
for one group (resource GROUP) is checked against :attr:`ConsumerGroupSettings.group_configs`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from barnabas.coordinator.consumer.assignors import ASSIGNORS
from barnabas.model.settings import INT32_MAX, InvalidSetting, Kind, Setting, SettingTable, Update, setting

_KAFKA_CLASSES: Final = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


class MigrationPolicy(enum.Enum):
    """Whether groups may pass from one protocol to the other while their members go on."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


def _assignors_problem(names: Any) -> str | None:
    if not names:
        return "at least one assignor is needed"
    for name in names:
        if _KAFKA_CLASSES.get(name, name) not in ASSIGNORS:
            return f"there is no assignor {name!r}; there are {', '.join(ASSIGNORS)}"
    return None


def _bounded(what: str, default: int, minimum: int, maximum: int, doc: str, **more: Any) -> tuple[Setting, ...]:
    return (
        setting(f"group.consumer.{what}", Kind.INT, default, doc, minimum=0 if minimum == 0 else 1, **more),
        setting(f"group.consumer.min.{what}", Kind.INT, minimum, f"The least that a group may set as consumer.{what}."),
        setting(f"group.consumer.max.{what}", Kind.INT, maximum, f"The most that a group may set as consumer.{what}."),
    )


CONSUMER_GROUP_SETTINGS: Final[tuple[Setting, ...]] = (
    *_bounded("session.timeout.ms", 45_000, 45_000, 60_000, "After what time without a heartbeat a member is removed."),
    *_bounded("heartbeat.interval.ms", 5_000, 5_000, 15_000, "How often members are told to send a heartbeat."),
    *_bounded(
        "assignment.interval.ms",
        1_000,
        0,
        15_000,
        "The least time between two assignments of a group.",
        update=Update.CLUSTER_WIDE,
    ),
    setting("group.consumer.max.size", Kind.INT, INT32_MAX, "The most members of one group.", minimum=1),
    setting(
        "group.consumer.assignors",
        Kind.LIST,
        ("uniform", "range"),
        "The assignors that members may ask for; the first one is used when they do not.",
        check=_assignors_problem,
    ),
    setting(
        "group.consumer.migration.policy",
        Kind.STRING,
        MigrationPolicy.BIDIRECTIONAL.value,
        "Whether groups may become groups of the other protocol while they are in use.",
        choices=tuple(policy.value for policy in MigrationPolicy),
    ),
    setting(
        "group.consumer.regex.refresh.interval.ms",
        Kind.INT,
        600_000,
        "How often the topics behind a group's patterns are looked up anew, even if no topic was made.",
        minimum=10_000,
    ),
)

_GROUP_TEXTS: Final = {
    "session.timeout.ms": "After what time without a heartbeat a member of this group is removed.",
    "heartbeat.interval.ms": "How often members of this group are told to send a heartbeat.",
    "assignment.interval.ms": "The least time between two assignments of this group.",
}


def _group_configs(values: Mapping[str, Any]) -> SettingTable:
    """What a group may set for itself, within the bounds that the broker sets."""
    return SettingTable(
        setting(
            f"consumer.{what}",
            Kind.INT,
            values[f"group.consumer.{what}"],
            doc,
            minimum=values[f"group.consumer.min.{what}"],
            maximum=values[f"group.consumer.max.{what}"],
            synonyms=(f"group.consumer.{what}",),
        )
        for what, doc in _GROUP_TEXTS.items()
    )


def _check(values: Mapping[str, Any]) -> None:
    """A value that is out of its own bounds would hold for no group at all."""
    for what in _GROUP_TEXTS:
        low, high = values[f"group.consumer.min.{what}"], values[f"group.consumer.max.{what}"]
        if not low <= values[f"group.consumer.{what}"] <= high:
            raise InvalidSetting(f"group.consumer.{what} must be between its minimum, {low}, and its maximum, {high}")
    if values["group.consumer.heartbeat.interval.ms"] >= values["group.consumer.session.timeout.ms"]:
        raise InvalidSetting("group.consumer.heartbeat.interval.ms must be below group.consumer.session.timeout.ms")


_DEFAULTS: Final = {setting.name: setting.default for setting in CONSUMER_GROUP_SETTINGS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupSettings:
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    size_max: int = INT32_MAX
    classic_size_max: int = INT32_MAX
    assignors: tuple[str, ...] = ("uniform", "range")
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_interval_ms: int = 600_000
    step_bytes_max: int = 1_000_000  # what one step may write: it is one batch of the offsets topic
    group_configs: SettingTable = field(default_factory=lambda: _group_configs(_DEFAULTS), compare=False)

    @classmethod
    def of(cls, given: Mapping[str, Any], *, classic_size_max: int, step_bytes_max: int) -> Self:
        """From the values that were given to a broker, by name."""
        values = {name: given.get(name, default) for name, default in _DEFAULTS.items()}
        _check(values)
        return cls(
            session_timeout_ms=values["group.consumer.session.timeout.ms"],
            heartbeat_interval_ms=values["group.consumer.heartbeat.interval.ms"],
            assignment_interval_ms=values["group.consumer.assignment.interval.ms"],
            size_max=values["group.consumer.max.size"],
            classic_size_max=classic_size_max,
            assignors=tuple(_KAFKA_CLASSES.get(name, name) for name in values["group.consumer.assignors"]),
            migration_policy=MigrationPolicy(values["group.consumer.migration.policy"]),
            regex_refresh_interval_ms=values["group.consumer.regex.refresh.interval.ms"],
            step_bytes_max=step_bytes_max,
            group_configs=_group_configs(values),
        )

    def for_group(self, configs: Mapping[str, str]) -> Self:
        """With what one group has set for itself; a broker that has since narrowed its bounds has the last word."""
        changes: dict[str, Any] = {}
        for name, text in configs.items():
            if name in self.group_configs:
                setting = self.group_configs[name]
                assert setting.minimum is not None
                assert setting.maximum is not None
                value = max(setting.minimum, min(int(text), setting.maximum))
                changes[name.removeprefix("consumer.").replace(".", "_")] = int(value)
        return replace(self, **changes) if changes else self
