"""Settings of replication reach those who act on them."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.model.settings import InvalidSetting
from barnabas.replication.settings import ReplicationSettings


def settings(**given: str) -> ReplicationSettings:
    return BrokerSettings.of({name.replace("_", "."): text for name, text in given.items()}).replication


def test_the_defaults_are_kafkas() -> None:
    found = settings()
    assert found == ReplicationSettings()
    assert (found.lag_ms_max, found.partition_bytes_max, found.wait_ms) == (30_000, 1024 * 1024, 500)
    assert (found.response_bytes_max, found.backoff_ms, found.fetchers) == (10 * 1024 * 1024, 1000, 1)
    assert (found.is_rack_aware, found.is_rebalanced, found.rebalance_interval_ms) == (False, True, 300_000)


def test_every_setting_has_its_value() -> None:
    changed = {
        "replica.lag.time.max.ms": "9000",
        "replica.fetch.max.bytes": "17",
        "replica.fetch.wait.max.ms": "100",
        "replica.fetch.min.bytes": "2",
        "replica.fetch.response.max.bytes": "18",
        "replica.fetch.backoff.ms": "3",
        "replica.socket.timeout.ms": "4",
        "num.replica.fetchers": "5",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "auto.leader.rebalance.enable": "false",
        "leader.imbalance.check.interval.seconds": "6",
        "leader.replication.throttled.rate": "7",
        "follower.replication.throttled.rate": "8",
        "replica.alter.log.dirs.io.max.bytes.per.second": "9",
    }
    assert set(changed) == {setting.name for setting in ReplicationSettings.table()}
    found = astuple(BrokerSettings.of(changed).replication)
    assert found == (9000, 17, 100, 2, 18, 3, 4, 5, True, False, 6000, 7, 8, 9)


def test_a_fetch_waits_no_longer_than_half_of_what_a_follower_may_lag() -> None:
    assert settings(replica_lag_time_max_ms="600").wait_ms == 300


def test_a_selector_that_is_not_offered_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        settings(replica_selector_class="com.example.Mine")
