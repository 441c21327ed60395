"""Settings of a broker in environment variables: every setting has one, and a misspelt one is said."""

from __future__ import annotations

import pytest

from barnabas.broker.settings.broker import ALIASES, BROKER_SETTINGS
from barnabas.cli.serve.environment import settings_of_environment, variable
from barnabas.model.settings import InvalidSetting


def test_every_setting_has_a_variable_of_its_own() -> None:
    names = [setting.name for setting in BROKER_SETTINGS] + list(ALIASES)
    environment = {variable(name): f"value of {name}" for name in names}
    assert len(environment) == len(names)
    assert settings_of_environment(environment) == {name: f"value of {name}" for name in names}


def test_other_variables_are_none_of_our_business() -> None:
    assert settings_of_environment({"PATH": "/bin", "BARNABAS_BOOTSTRAP_SERVERS": "x", "LOG_DIRS": "y"}) == {}


def test_a_misspelt_variable_suggests_the_right_one() -> None:
    with pytest.raises(InvalidSetting, match="did you mean BARNABAS_SET_LOG_RETENTION_HOURS"):
        settings_of_environment({"BARNABAS_SET_LOG_RETENION_HOURS": "1"})


def test_a_setting_of_one_listener_is_found() -> None:
    environment = {"BARNABAS_SET_LISTENER_NAME_MY_WAY_SASL_ENABLED_MECHANISMS": "PLAIN"}
    assert settings_of_environment(environment) == {"listener.name.my_way.sasl.enabled.mechanisms": "PLAIN"}
