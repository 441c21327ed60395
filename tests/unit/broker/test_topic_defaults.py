"""A broker's settings are the topics' defaults: each of them, in its own unit, reaches the topics that set nothing."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.settings.broker import UNITS_MS, BrokerSettings
from barnabas.model.settings import InvalidSetting, Kind, Setting
from barnabas.storage.settings import TOPIC_SETTINGS

PAIRS = [(setting, name) for setting in TOPIC_SETTINGS for name in setting.synonyms]
# preallocate, remote.storage.enable, remote.log.copy.disable, remote.log.delete.on.disable
NOT_OFFERED = [setting for setting in TOPIC_SETTINGS if setting.default is False and setting.check is not None]


def another_value(setting: Setting, name: str) -> Any:
    """One that is allowed, and is not the default."""
    if setting.choices:
        other = next(choice for choice in setting.choices if choice not in (setting.default, *(setting.default or ())))
        return (other,) if setting.kind is Kind.LIST else other
    if setting.kind is Kind.BOOLEAN:
        return not setting.default
    if setting.kind is Kind.DOUBLE:
        return 0.25
    if name in UNITS_MS:
        return 3
    return 5 if setting.maximum is not None else max(int(setting.minimum or 0), 1) * 2


@pytest.mark.parametrize(("setting", "name"), PAIRS, ids=[name for _, name in PAIRS])
def test_a_default_of_the_broker_is_the_value_of_its_topics(setting: Setting, name: str) -> None:
    if setting in NOT_OFFERED or "local.retention" in name:
        with pytest.raises(InvalidSetting):
            BrokerSettings.of({name: "true" if setting in NOT_OFFERED else "1"})
        return
    value = another_value(setting, name)
    found = BrokerSettings.of({name: setting.text(value) or ""}).topic_defaults
    assert getattr(found, setting.attribute) == (value * UNITS_MS[name] if name in UNITS_MS else value)


@pytest.mark.parametrize(
    "setting", [each for each in TOPIC_SETTINGS if len(each.synonyms) > 1], ids=lambda each: each.name
)
def test_the_finest_unit_wins(setting: Setting) -> None:
    given = {name: str(number) for number, name in enumerate(setting.synonyms, 1)}
    found = BrokerSettings.of(given).topic_defaults
    assert getattr(found, setting.attribute) == 1


@pytest.mark.parametrize("name", ["local.retention.ms", "local.retention.bytes"])
def test_without_tiers_there_is_no_retention_of_one(name: str) -> None:
    assert TOPIC_SETTINGS[name].parse("-2") == -2
    with pytest.raises(InvalidSetting, match="not offered"):
        TOPIC_SETTINGS[name].parse("1000")


@pytest.mark.parametrize("setting", NOT_OFFERED, ids=lambda each: each.name)
def test_what_is_not_offered_cannot_be_switched_on(setting: Setting) -> None:
    assert setting.parse("false") is False
    with pytest.raises(InvalidSetting, match="not offered"):
        setting.parse("true")
