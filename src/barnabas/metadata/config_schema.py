"""What configurations mean: which names there are, which values are allowed, and which value applies to a topic.

A topic's value comes from the topic, else from the dynamic settings of this node, else from those of the whole
cluster, else from what this node was started with, else it is the default. Alterations are decided in ``configs``;
the picture keeps only texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from barnabas.metadata.configs_image import ConfigsImage
from barnabas.model.settings import InvalidSetting, Kind, Setting, SettingTable
from barnabas.storage.settings import TOPIC_SETTINGS

# Where a value comes from, as DescribeConfigs numbers it.
TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION_ENABLE: Final = "unclean.leader.election.enable"
_MILLISECONDS: Final = {".hours": 60 * 60 * 1000, ".minutes": 60 * 1000}


class EffectiveConfig(NamedTuple):
    name: str
    value: str | None
    source: int
    is_sensitive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSchema:
    """The tables of settings, and this node's own values for them."""

    node_id: int = 0
    topic_settings: SettingTable = TOPIC_SETTINGS
    broker_settings: SettingTable = field(default_factory=lambda: SettingTable(()))
    group_settings: SettingTable = field(default_factory=lambda: SettingTable(()))
    static: Mapping[str, str] = field(default_factory=dict)  # what the node was started with, by name

    def topic_config(self, setting: Setting, configs: ConfigsImage, own: Mapping[str, str]) -> EffectiveConfig:
        """The value of one setting for a topic whose own configurations are ``own``."""
        if setting.name in own:
            return EffectiveConfig(setting.name, own[setting.name], TOPIC_CONFIG, setting.sensitive)
        for values, source in (
            (configs.of_broker(self.node_id), DYNAMIC_BROKER_CONFIG),
            (configs.of_cluster(), DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static, STATIC_BROKER_CONFIG),
        ):
            for synonym in setting.synonyms:
                if synonym in values:
                    value = _in_unit_of(setting, synonym, values[synonym])
                    return EffectiveConfig(setting.name, value, source, setting.sensitive)
        return EffectiveConfig(setting.name, setting.text(setting.default), DEFAULT_CONFIG, setting.sensitive)

    def topic_configs(self, configs: ConfigsImage, own: Mapping[str, str]) -> list[EffectiveConfig]:
        """All settings of a topic, sorted by name."""
        settings = sorted(self.topic_settings, key=lambda setting: setting.name)
        return [self.topic_config(setting, configs, own) for setting in settings]

    def topic_value(self, configs: ConfigsImage, topic: str, name: str) -> Any:
        """The parsed value of a topic's setting. A node started with nonsense falls back to the default."""
        setting = self.topic_settings[name]
        text = self.topic_config(setting, configs, configs.of_topic(topic)).value
        assert text is not None, name
        try:
            return setting.parse(text)
        except InvalidSetting:
            return setting.default

    def reason_invalid_topic(self, configs: ConfigsImage, own: Mapping[str, str]) -> str | None:
        """Why a topic cannot have these configurations of its own, or None."""
        for name, text in own.items():
            if name not in self.topic_settings:
                return f"topics have no setting {name!r}{self.topic_settings.suggestion(name)}"
            try:
                self.topic_settings[name].parse(text)
            except InvalidSetting as error:
                return str(error)
        least, most = (
            int(self.topic_config(self.topic_settings[name], configs, own).value or 0)
            for name in ("min.compaction.lag.ms", "max.compaction.lag.ms")
        )
        if least > most:
            return f"min.compaction.lag.ms ({least}) is above max.compaction.lag.ms ({most})"
        return None

    def is_list(self, table: SettingTable, name: str) -> bool:
        return name in table and table[name].kind is Kind.LIST


def _in_unit_of(setting: Setting, synonym: str, text: str) -> str:
    """A broker gives some times in hours or minutes that a topic gives in milliseconds."""
    for unit, factor in _MILLISECONDS.items():
        if synonym.endswith(unit) and setting.name.endswith(".ms"):
            amount = int(text)
            return str(amount * factor if amount >= 0 else -1)
    return text
