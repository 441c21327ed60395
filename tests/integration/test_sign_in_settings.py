"""What settings of sign-in say from afar, and what a broker needs before it starts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from talk import Talk

from barnabas.model import errors
from barnabas.model.settings import InvalidSetting
from barnabas.security.plain import LOGIN_MODULE
from barnabas.testing import Broker
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

PLAIN_USERS = f'{LOGIN_MODULE} required user_alice="alice-secret" user_bob="bob-secret";'


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": PLAIN_USERS,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
    }
    with Broker(settings=settings) as running:
        yield running


@pytest.fixture
def talk_plainly(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as talk:
        yield talk


def test_cve_2019_12399_secrets_are_not_described(broker: Broker, talk_plainly: Talk) -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=4, resource_name="1", configuration_keys=None
    )
    answer = talk_plainly.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True))
    configs = {entry.name: entry for entry in answer.results[0].configs}
    entry = configs["plain.sasl.jaas.config"]
    assert entry.is_sensitive
    assert entry.value is None
    shown = [text for entry in configs.values() for text in (entry.value, *(each.value for each in entry.synonyms))]
    assert not any("secret" in text for text in shown if text is not None)
    assert "secret" not in repr(broker.node.settings.security)


@pytest.mark.parametrize("name", ["plain.sasl.jaas.config", "listener.name.sasl_ssl.plain.sasl.jaas.config"])
def test_cve_2023_25194_users_and_login_modules_cannot_be_set_from_afar(talk_plainly: Talk, name: str) -> None:
    value = "com.sun.security.auth.module.JndiLoginModule required;"
    config = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    (result,) = talk_plainly.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
    assert result.error_code == errors.INVALID_REQUEST.code


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, r"name sasl\.enabled\.mechanisms"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "must be one of PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "there is no user"),
        ({"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": f"{LOGIN_MODULE} required a=b;"}, "no user"),
    ],
)
def test_a_broker_without_a_source_of_users_does_not_start(settings: dict[str, str], sentence: str) -> None:
    with (
        pytest.raises(InvalidSetting, match=sentence),
        Broker(settings={"listeners": "SASL_PLAINTEXT://127.0.0.1:0", **settings}),
    ):
        pass
