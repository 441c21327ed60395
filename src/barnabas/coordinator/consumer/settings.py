"""How groups of the consumer protocol are run: what a broker's settings say, and what a group may have otherwise.

Declared here, beside what they govern; ``broker/settings/broker.py`` takes the table into its own, and what is set
for one group (resource GROUP) is checked against :attr:`ConsumerGroupSettings.group_configs`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from barnabas.coordinator.consumer.assignors import ASSIGNORS
from barnabas.model.declared import Declared, named
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


_BOUNDS: Final = {  # the least and the most that a group may set, by default
    "session.timeout.ms": (45_000, 60_000),
    "heartbeat.interval.ms": (5_000, 15_000),
    "assignment.interval.ms": (0, 15_000),
}

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupSettings(Declared):
    session_timeout_ms: int = named(
        "group.consumer.session.timeout.ms",
        Kind.INT,
        45_000,
        "After what time without a heartbeat a member is removed.",
        minimum=1,
    )
    heartbeat_interval_ms: int = named(
        "group.consumer.heartbeat.interval.ms",
        Kind.INT,
        5_000,
        "How often members are told to send a heartbeat.",
        minimum=1,
    )
    assignment_interval_ms: int = named(
        "group.consumer.assignment.interval.ms",
        Kind.INT,
        1_000,
        "The least time between two assignments of a group.",
        minimum=0,
        update=Update.CLUSTER_WIDE,
    )
    size_max: int = named("group.consumer.max.size", Kind.INT, INT32_MAX, "The most members of one group.", minimum=1)
    assignors: tuple[str, ...] = named(
        "group.consumer.assignors",
        Kind.LIST,
        ("uniform", "range"),
        "The assignors that members may ask for; the first one is used when they do not.",
        check=_assignors_problem,
        convert=lambda names: tuple(_KAFKA_CLASSES.get(name, name) for name in names),
    )
    migration_policy: MigrationPolicy = named(
        "group.consumer.migration.policy",
        Kind.STRING,
        MigrationPolicy.BIDIRECTIONAL.value,
        "Whether groups may become groups of the other protocol while they are in use.",
        choices=tuple(policy.value for policy in MigrationPolicy),
        convert=MigrationPolicy,
    )
    regex_refresh_interval_ms: int = named(
        "group.consumer.regex.refresh.interval.ms",
        Kind.INT,
        600_000,
        "How often the topics behind a group's patterns are looked up anew, even if no topic was made.",
        minimum=10_000,
    )
    classic_size_max: int = INT32_MAX
    step_bytes_max: int = 1_000_000  # what one step may write: it is one batch of the offsets topic
    group_configs: SettingTable = field(
        default_factory=lambda: _group_configs(CONSUMER_GROUP_SETTINGS.filled({})), compare=False
    )

    @classmethod
    def of(cls, given: Mapping[str, Any], *, classic_size_max: int, step_bytes_max: int) -> Self:
        """From the values that were given to a broker, by name."""
        values = CONSUMER_GROUP_SETTINGS.filled(given)
        _check(values)
        return cls.of_values(
            given,
            classic_size_max=classic_size_max,
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


def _bounds() -> Iterator[Setting]:
    for what, (low, high) in _BOUNDS.items():
        yield setting(
            f"group.consumer.min.{what}", Kind.INT, low, f"The least that a group may set as consumer.{what}."
        )
        yield setting(
            f"group.consumer.max.{what}", Kind.INT, high, f"The most that a group may set as consumer.{what}."
        )


CONSUMER_GROUP_SETTINGS: Final[SettingTable] = SettingTable([*ConsumerGroupSettings.table(), *_bounds()])
