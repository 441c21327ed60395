"""The table of topic settings and the typed values agree with each other and with Kafka's defaults."""

from __future__ import annotations

import dataclasses

import pytest

from barnabas.model.settings import InvalidSetting
from barnabas.storage.settings import TOPIC_SETTINGS, TopicSettings


def test_every_setting_has_an_attribute_with_the_same_default() -> None:
    defaults = TopicSettings()
    assert {field.name for field in dataclasses.fields(TopicSettings)} == {
        setting.attribute for setting in TOPIC_SETTINGS
    }
    for setting in TOPIC_SETTINGS:
        assert getattr(defaults, setting.attribute) == setting.default, setting.name


def test_defaults_lie_within_their_own_ranges() -> None:
    for setting in TOPIC_SETTINGS:
        assert setting.checked(setting.default) == setting.default


def test_values_are_taken_by_name() -> None:
    values = TOPIC_SETTINGS.parse(
        {"segment.bytes": "2097152", "cleanup.policy": "compact,delete", "retention.ms": "-1"}
    )
    settings = TopicSettings.of_values(values)
    assert settings.segment_bytes == 2097152
    assert settings.cleanup_policy == ("compact", "delete")
    assert settings.is_compacted
    assert settings.is_deleted
    assert settings.retention_ms == -1


def test_an_empty_cleanup_policy_keeps_everything() -> None:
    settings = TopicSettings.of_values(TOPIC_SETTINGS.parse({"cleanup.policy": ""}))
    assert not settings.is_compacted
    assert not settings.is_deleted


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("segment.bytes", "1048575"),
        ("cleanup.policy", "burn"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("message.timestamp.type", "Whenever"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("leader.replication.throttled.replicas", "1-2"),
        ("segment.byte", "1"),
    ],
)
def test_a_wrong_value_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidSetting):
        TOPIC_SETTINGS.parse({name: text})


@pytest.mark.parametrize("text", ["", "*", "none", "0:1,1:2"])
def test_throttled_replicas_are_pairs_or_all_or_none(text: str) -> None:
    TOPIC_SETTINGS["follower.replication.throttled.replicas"].parse(text)


@pytest.mark.parametrize("name", ["preallocate", "remote.storage.enable", "remote.log.copy.disable"])
def test_what_is_not_offered_cannot_be_switched_on(name: str) -> None:
    assert TOPIC_SETTINGS[name].parse("false") is False
    with pytest.raises(InvalidSetting, match="not offered"):
        TOPIC_SETTINGS[name].parse("true")
