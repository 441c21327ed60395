"""Settings of consumer groups: the broker's, the group's own, and the bounds between them."""

from __future__ import annotations

import pytest

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.coordinator.consumer.settings import MigrationPolicy
from barnabas.model.settings import InvalidSetting


def settings(**given: str):
    return BrokerSettings.of({name.replace("_", "."): value for name, value in given.items()}).consumer_groups


def test_the_defaults_are_kafkas():
    found = settings()
    assert (found.session_timeout_ms, found.heartbeat_interval_ms, found.assignment_interval_ms) == (
        45_000,
        5_000,
        1_000,
    )
    assert found.assignors == ("uniform", "range")
    assert found.migration_policy is MigrationPolicy.BIDIRECTIONAL
    assert found.regex_refresh_interval_ms == 600_000


def test_what_is_given_counts():
    found = settings(
        group_consumer_session_timeout_ms="50000",
        group_consumer_heartbeat_interval_ms="6000",
        group_consumer_assignment_interval_ms="0",
        group_consumer_assignors="org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        group_consumer_migration_policy="upgrade",
        group_consumer_max_size="7",
        group_max_size="9",
    )
    assert (found.session_timeout_ms, found.heartbeat_interval_ms, found.assignment_interval_ms) == (50_000, 6_000, 0)
    assert found.assignors == ("range",)
    assert found.migration_policy is MigrationPolicy.UPGRADE
    assert (found.size_max, found.classic_size_max) == (7, 9)


@pytest.mark.parametrize(
    "given",
    [
        {"group_consumer_session_timeout_ms": "1000"},
        {"group_consumer_heartbeat_interval_ms": "20000"},
        {"group_consumer_assignors": "cheapest"},
        {"group_consumer_assignors": ""},
        {"group_consumer_migration_policy": "sideways"},
        {
            "group_consumer_heartbeat_interval_ms": "50000",
            "group_consumer_max_heartbeat_interval_ms": "60000",
        },
    ],
)
def test_what_makes_no_sense_is_refused(given):
    with pytest.raises(InvalidSetting, match=r"group\.consumer"):
        settings(**given)


def test_a_group_has_its_own_within_the_brokers_bounds():
    found = settings().for_group({"consumer.heartbeat.interval.ms": "7000", "consumer.session.timeout.ms": "999999"})
    assert (found.heartbeat_interval_ms, found.session_timeout_ms) == (7_000, 60_000)
    assert settings().for_group({"share.isolation.level": "x"}) == settings()


@pytest.mark.parametrize(
    ("policy", "up", "down"),
    [("bidirectional", True, True), ("upgrade", True, False), ("downgrade", False, True), ("disabled", False, False)],
)
def test_the_policy_says_which_way_groups_may_go(policy, up, down):
    found = MigrationPolicy(policy)
    assert (found.allows_upgrade, found.allows_downgrade) == (up, down)
