"""Settings are read, checked, inherited and explained."""

from __future__ import annotations

import pytest

from barnabas.broker.settings.broker import BROKER_SETTINGS, BrokerSettings
from barnabas.broker.settings.endpoints import Endpoint, parse_endpoint
from barnabas.model.settings import InvalidSetting
from barnabas.storage.settings import TOPIC_SETTINGS


def test_defaults_are_kafkas() -> None:
    settings = BrokerSettings.of({})
    assert settings.num_partitions == 1
    assert settings.socket_request_max_bytes == 104857600
    assert settings.fetch_max_bytes == 57671680
    assert settings.offsets_topic_replication_factor == 3
    assert settings.topic_defaults.retention_ms == 604800000
    assert settings.topic_defaults.segment_bytes == 1073741824


def test_a_misspelt_setting_suggests_the_right_one() -> None:
    with pytest.raises(InvalidSetting, match=r"num\.partition.*did you mean 'num\.partitions'"):
        BrokerSettings.of({"num.partition": "3"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "0"),
        ("num.partitions", "three"),
        ("num.partitions", str(2**31)),
        ("auto.create.topics.enable", "maybe"),
        ("log.cleanup.policy", "burn"),
        ("listeners", "9092"),
        ("listeners", "PLAINTEXT://localhost:99999"),
        ("listeners", "INSIDE://localhost:9092"),
        ("listeners", "PLAINTEXT://localhost:9092,PLAINTEXT://localhost:9093"),
        ("advertised.listeners", "OUTSIDE://example.org:9092"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:9092"),
        ("listener.security.protocol.map", "PLAINTEXT"),
        ("listener.security.protocol.map", "PLAINTEXT:TELEPATHY"),
        ("listener.name.outside.ssl.client.auth", "required"),
        ("ssl.client.auth", "perhaps"),
        ("ssl.enabled.protocols", "TLSv1.1"),
        ("ssl.principal.mapping.rules", "RULE:(/x/"),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_the_setting(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=name.replace(".", r"\.")):
        BrokerSettings.of({name: value})


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.minutes": "1", "log.retention.hours": "9"}, 60_000),
        ({"log.retention.ms": "5", "log.retention.minutes": "1"}, 5),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_given_wins(given: dict[str, str], retention_ms: int) -> None:
    assert BrokerSettings.of(given).topic_defaults.retention_ms == retention_ms


def test_what_the_metadata_log_says_wins_over_the_file() -> None:
    settings = BrokerSettings.of({"num.partitions": "2", "log.segment.bytes": "1048576"}, {"num.partitions": "5"})
    assert settings.num_partitions == 5
    assert settings.topic_defaults.segment_bytes == 1048576


def test_every_topic_setting_can_be_given_a_default_where_kafka_has_one() -> None:
    for setting in TOPIC_SETTINGS:
        for name in setting.synonyms:
            assert name in BROKER_SETTINGS, name


def test_addresses_are_read_as_kafka_writes_them() -> None:
    assert parse_endpoint("PLAINTEXT://:9092") == Endpoint("PLAINTEXT", "", 9092)
    assert parse_endpoint("plaintext://[::1]:9092") == Endpoint("PLAINTEXT", "::1", 9092)
    assert str(Endpoint("PLAINTEXT", "::1", 9092)) == "PLAINTEXT://[::1]:9092"
