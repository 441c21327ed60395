from __future__ import annotations

import pytest

from barnabas.client.consumer_settings import ConsumerSettings
from barnabas.client.producer_settings import ProducerSettings
from barnabas.client.settings import Settings, address_of
from barnabas.model.settings import InvalidSetting


def test_defaults_are_those_that_kafkas_users_know() -> None:
    producer, consumer = ProducerSettings(), ConsumerSettings()
    assert (producer.acks, producer.linger_ms, producer.batch_size, producer.enable_idempotence) == (-1, 5, 16384, True)
    assert (producer.delivery_timeout_ms, producer.buffer_memory) == (120_000, 33_554_432)
    assert (consumer.fetch_max_wait_ms, consumer.max_partition_fetch_bytes) == (500, 1_048_576)
    assert consumer.isolation_level == "read_uncommitted"


def test_kafkas_names_and_texts_are_understood() -> None:
    settings = ProducerSettings.of({"bootstrap.servers": "a:1, b:2", "acks": "all", "linger.ms": "7", "batch_size": 9})
    assert settings.bootstrap_servers == ("a:1", "b:2")
    assert (settings.acks, settings.linger_ms, settings.batch_size) == (-1, 7, 9)


def test_a_misspelt_name_suggests_the_right_one() -> None:
    with pytest.raises(InvalidSetting, match=r"linger\.ms"):
        ProducerSettings.of({"linger.sm": "5"})


@pytest.mark.parametrize("wrong", [{"acks": 2}, {"linger_ms": -1}, {"compression_type": "brotli"}])
def test_a_wrong_value_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        ProducerSettings(**wrong)  # type: ignore[arg-type]


def test_one_string_of_servers_is_not_taken_for_its_letters() -> None:
    assert Settings(bootstrap_servers="a:1,b:2").bootstrap_servers == ("a:1", "b:2")  # type: ignore[arg-type]


def test_fewer_acks_switch_idempotence_off_as_javas_producer_does() -> None:
    assert not ProducerSettings(acks=1).enable_idempotence


def test_idempotence_limits_what_is_in_flight_to_what_brokers_remember() -> None:
    with pytest.raises(InvalidSetting, match="five"):
        ProducerSettings(max_in_flight_requests_per_connection=6)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("host:1234", ("host", 1234)),
        ("host", ("host", 9092)),
        ("[::1]:7", ("::1", 7)),
        ("[::1]", ("::1", 9092)),
        ("PLAINTEXT://host:5", ("host", 5)),
    ],
)
def test_addresses_are_read(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", ":1", "host:x", "host:0", "host:70000", "[::1]x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        address_of(text)
