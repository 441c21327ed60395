"""Names, types, defaults and when a change takes effect are those of Kafka 4.3.1, but for what is listed here.

``tests/data/kafka-4.3-settings.json`` was printed by Kafka's own classes: for each setting its type, its default and
how it may be changed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from barnabas.broker.settings.broker import ALIASES, BROKER_SETTINGS
from barnabas.broker.settings.unoffered import unoffered_settings
from barnabas.model.settings import InvalidSetting, Kind, Setting, SettingTable, Update
from barnabas.storage.settings import TOPIC_SETTINGS

KAFKA = json.loads((Path(__file__).parents[2] / "data" / "kafka-4.3-settings.json").read_text())
TABLES: dict[str, SettingTable] = {"broker": BROKER_SETTINGS, "topic": TOPIC_SETTINGS}
PAIRS = [(table, setting) for table in TABLES for setting in TABLES[table] if setting.name in KAFKA[table]]

# Settings of ours, of Kafka's authorizer, and of older Kafkas that files still name.
NOT_KAFKAS = {
    "allow.everyone.if.no.acl.found",
    "super.users",
    "plain.sasl.jaas.config",
    "scram-sha-256.sasl.jaas.config",
    "scram-sha-512.sasl.jaas.config",
    "oauthbearer.sasl.jaas.config",
    "oauthbearer.sasl.server.callback.handler.class",
    "log.message.format.version",
    "inter.broker.protocol.version",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "producer.id.expiration.check.interval.ms",  # internal, like the next
    "group.consumer.regex.refresh.interval.ms",
    "group.share.initialize.retry.interval.ms",
    "share.coordinator.state.topic.prune.interval.ms",
    "share.coordinator.cold.partition.snapshot.interval.ms",
}
OTHER_DEFAULTS = {
    "node.id": "a first broker needs no number",
    "log.dirs": "data stays where the broker was started, and not in a folder for temporary files",
    "process.roles": "a node alone is both",
    "controller.listener.names": "the name that everybody uses",
    "controller.quorum.auto.join.enable": "a controller that joins becomes a voter",
    "sasl.mechanism.inter.broker.protocol": "GSSAPI is not offered; the login that is given says which",
    "sasl.mechanism.controller.protocol": "the same",
    "sasl.enabled.mechanisms": "GSSAPI is not offered, and no other is switched on unasked",
    "ssl.keystore.type": "PEM is the only form",
    "ssl.truststore.type": "PEM is the only form",
    "listener.security.protocol.map": "the same map, written in another order",
    "metric.reporters": "there is no Java to report to",
    "log.flush.scheduler.interval.ms": "unset is the largest number, said otherwise",
    "log.cleaner.io.max.bytes.per.second": "the same number, written in another way",
    "security.inter.broker.protocol": "unset is the first listener that is not for controllers",
}
OTHER_KINDS = {"listener.security.protocol.map": "a list that Kafka splits itself"}
# May be changed while running here, and in Kafka only at a restart.
EASIER = {
    "num.partitions",
    "default.replication.factor",
    "auto.create.topics.enable",
    "delete.topic.enable",
    "fetch.max.bytes",
    "log.retention.minutes",
    "log.retention.hours",
    "log.roll.hours",
    "log.roll.jitter.hours",
    "log.flush.scheduler.interval.ms",
}


def is_harder(setting: Setting) -> bool:
    """What is spoken on all listeners is read when a broker starts, but for their keys and their trust. What is given
    for one listener may come with it."""
    is_key = setting.name.startswith(("ssl.keystore.", "ssl.truststore.", "ssl.key."))
    return setting.name.startswith(("ssl.", "sasl.")) and not is_key


@pytest.mark.parametrize(("table", "setting"), PAIRS, ids=[f"{table}:{setting.name}" for table, setting in PAIRS])
def test_a_setting_is_as_kafka_has_it(table: str, setting: Setting) -> None:
    kind, default, update = KAFKA[table][setting.name]
    if setting.name not in OTHER_KINDS:
        assert setting.kind.name.lower() == kind
    if setting.name not in OTHER_DEFAULTS:
        assert (setting.text(setting.default) or None) == (default or None)
    if setting.update.value != update:
        is_easier = setting.name in EASIER and update == Update.READ_ONLY.value
        assert is_easier or (is_harder(setting) and setting.update is Update.READ_ONLY)


@pytest.mark.parametrize("table", TABLES)
def test_every_name_is_kafkas_or_ours(table: str) -> None:
    strange = [
        setting.name
        for setting in TABLES[table]
        if setting.name not in KAFKA[table]
        and setting.name not in NOT_KAFKAS
        and not setting.name.startswith("barnabas.")
    ]
    assert strange == []


def test_no_topic_setting_of_kafka_is_missing() -> None:
    assert [name for name in KAFKA["topic"] if name not in TOPIC_SETTINGS] == []


def test_no_broker_setting_of_kafka_is_unknown() -> None:
    """Whoever brings a file written for Kafka hears what each line means here, and of none that it does not exist."""
    known = {*(setting.name for setting in BROKER_SETTINGS), *ALIASES}
    assert [name for name in KAFKA["broker"] if name not in known] == []


@pytest.mark.parametrize("setting", list(unoffered_settings()), ids=lambda setting: setting.name)
def test_what_is_not_offered_keeps_its_default_and_is_refused_otherwise(setting: Setting) -> None:
    if setting.default is not None:
        assert setting.parse(setting.text(setting.default) or "") == setting.default
    with pytest.raises(InvalidSetting, match=f"{re.escape(setting.name)}: this is not offered: "):
        setting.parse("true" if setting.kind is Kind.BOOLEAN else "1")


def test_what_is_said_to_differ_does() -> None:
    for name in OTHER_DEFAULTS:
        setting = BROKER_SETTINGS[name]
        assert setting.text(setting.default) != KAFKA["broker"][name][1], name
