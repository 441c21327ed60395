"""Secrets of a configuration are hidden where it is shown; sending the shown form back changes nothing."""

from __future__ import annotations

from barnabas.connect.config import HIDDEN
from barnabas.connect.secrets import Redactor, masked, secrets_of, unmasked

CONFIG = {
    "name": "orders",
    "database.pass": "hunter2",
    "producer.override.sasl.jaas.config": "org.apache.kafka… password='hunter3'",
    "iceberg.catalog.s3.secret-access-key": "hunter4",
    "connection.url": "postgresql://shop:hunter5@127.0.0.1:5432/shop",
    "plain.url": "http://127.0.0.1:8081/path",
    "connection.password": "${env:SHOP_PASSWORD}",
    "empty.password": "",
}
DECLARED = frozenset({"database.pass"})


def test_secrets_are_hidden_and_the_rest_is_shown_as_it_was_given() -> None:
    assert masked(CONFIG, DECLARED) == CONFIG | {
        "database.pass": HIDDEN,
        "producer.override.sasl.jaas.config": HIDDEN,
        "iceberg.catalog.s3.secret-access-key": HIDDEN,
        "connection.url": f"postgresql://shop:{HIDDEN}@127.0.0.1:5432/shop",
    }


def test_a_configuration_that_comes_back_as_it_was_shown_is_unchanged() -> None:
    assert unmasked(masked(CONFIG, DECLARED), CONFIG) == CONFIG
    assert unmasked({"database.pass": "new"}, CONFIG) == {"database.pass": "new"}
    assert unmasked({"other": HIDDEN}, CONFIG) == {"other": HIDDEN}
    moved = {"connection.url": f"postgresql://shop:{HIDDEN}@elsewhere:5432/shop"}
    assert unmasked(moved, CONFIG) == moved, "a password is not sent to another host"


def test_traces_contain_no_secret() -> None:
    redact = Redactor(secrets_of(CONFIG, DECLARED))
    trace = " ".join(CONFIG.values())
    assert "hunter" in trace
    assert "hunter" not in redact(trace)
