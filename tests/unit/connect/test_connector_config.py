"""A configuration is checked as Kafka checks it, unknown keys are named, and secrets stay hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from barnabas.connect.catalog import Catalog, PluginSettings, load, plugin_of
from barnabas.connect.connector_config import check, secret_keys, take_apart, validate
from barnabas.connect.errors import ConfigError, UnknownPlugin
from barnabas.connect.plugins import Config, Cursor, Meta, Names, Record, Secret, doc, source
from barnabas.connect.references import Resolver
from barnabas.connect.secrets import Redactor


class Orders(Config):
    url: Annotated[str, doc("Address of the API")]
    topic: str
    token: Secret = Secret("")
    page_size: Annotated[int, doc("Orders per request"), Meta(ge=1, le=1000)] = 100
    mode: Literal["all", "new"] = "all"
    tables: Names = ()


@source("http-orders", every="10 s", replayable=False, aliases=["com.example.OrdersSourceConnector"])
def orders(config: Orders, cursor: int = 0) -> Iterator[Record | Cursor]:
    yield Record(config.topic, cursor)
    yield Cursor(cursor + 1)


GIVEN = {"name": "a", "connector.class": "http-orders", "url": "http://x", "topic": "t"}


@pytest.fixture
def catalog() -> Catalog:
    made = load(PluginSettings())
    made.add(plugin_of(orders, "1.2"))
    return made


def messages(catalog: Catalog, **changes: str | None) -> list[str]:
    given = {**GIVEN, **{key.replace("__", "."): value for key, value in changes.items()}}
    parts = take_apart(catalog, {key: value for key, value in given.items() if value is not None})
    return [message for _, _, found in check(parts) for message in found]


@pytest.mark.parametrize(
    "name", ["http-orders", "com.example.OrdersSourceConnector", "OrdersSourceConnector", "OrdersSource"]
)
def test_a_connector_is_found_by_every_name(catalog: Catalog, name: str) -> None:
    assert take_apart(catalog, GIVEN | {"connector.class": name}).plugin.name == "http-orders"


def test_values_are_typed(catalog: Catalog) -> None:
    config = Orders.read({"url": "u", "topic": "t", "page.size": "7", "tables": "a, b", "token": "pw"})
    assert (config.page_size, config.tables, config.token.reveal()) == (7, ("a", "b"), "pw")
    assert "pw" not in repr(config)
    assert str(config.token) == f"{config.token}" == "********"


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"topic": None}, 'Missing required configuration "topic"'),
        ({"page__size": "0"}, "Invalid value 0 for configuration page.size"),
        ({"page__size": "many"}, "Invalid value many for configuration page.size"),
        ({"mode": "some"}, "must be one of all, new"),
        ({"pagesize": "5"}, "Unknown configuration 'pagesize'"),
        ({"tasks__max": "0"}, "tasks.max"),
        ({"name": ""}, "configuration name"),
        ({"value__converter": "Nope"}, "Nope"),
        ({"value__converter__nope": "x"}, "Unknown configuration 'value.converter.nope'"),
        ({"transforms": "a"}, 'Missing required configuration "transforms.a.type"'),
        ({"transforms": "a", "transforms__a__type": "Nope"}, "Nope"),
        ({"transforms": "a", "transforms__a__type": "Cast$Value"}, "transforms.a.spec"),
        ({"transforms": "a,a", "transforms__a__type": "Filter"}, "twice"),
        ({"exactly__once__support": "required"}, "cannot read the same records again"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(catalog: Catalog, changes: dict[str, Any], part: str) -> None:
    found = messages(catalog, **changes)
    assert any(part in message for message in found), found


def test_a_valid_configuration_has_no_problems(catalog: Catalog) -> None:
    more = {
        "transforms": "mask",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.MaskField$Value",
        "transforms.mask.fields": "card",
        "transforms.mask.predicate": "gone",
        "predicates": "gone",
        "predicates.gone.type": "RecordIsTombstone",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "producer.override.linger.ms": "5",
        "topic.creation.default.partitions": "3",
    }
    assert validate(catalog, GIVEN | more)["error_count"] == 0


def test_validation_answers_in_kafkas_shape(catalog: Catalog) -> None:
    infos = validate(catalog, GIVEN | {"token": "hush", "page.size": "0"})
    by_name = {each["definition"]["name"]: each for each in infos["configs"]}
    assert infos["error_count"] == 1
    assert by_name["token"]["definition"]["type"] == "PASSWORD"
    assert by_name["token"]["value"]["value"] == "********"
    assert by_name["mode"]["value"]["recommended_values"] == ["all", "new"]
    assert by_name["page.size"]["definition"]["default_value"] == "100"
    assert by_name["url"]["definition"]["required"]
    assert "hush" not in str(infos)


def test_an_unknown_or_missing_class_is_an_error(catalog: Catalog) -> None:
    with pytest.raises(UnknownPlugin, match="http-orders"):
        take_apart(catalog, GIVEN | {"connector.class": "Nope"})
    with pytest.raises(ConfigError, match="contains no connector type"):
        take_apart(catalog, {"name": "a"})
    with pytest.raises(UnknownPlugin, match=r"1\.2"):
        take_apart(catalog, GIVEN | {"connector.plugin.version": "9"})


def test_modules_are_refused_unless_they_are_allowed(catalog: Catalog) -> None:
    with pytest.raises(UnknownPlugin, match=r"plugins\.allow"):
        catalog.find("os:system", ("transformation",))
    with pytest.raises(UnknownPlugin, match="not a transformation"):
        load(PluginSettings(allow=("os",))).find("os:environ", ("transformation",))


def test_plugins_come_from_a_directory_and_a_broken_file_hurts_no_other(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(
        "from barnabas.connect.plugins import transform\n"
        "@transform('shout')\ndef shout(record):\n    return record.copy(value=record.value.upper())\n"
    )
    (tmp_path / "broken.py").write_text("1 / 0\n")
    plugin = load(PluginSettings(str(tmp_path))).find("shout", ("transformation",))
    assert plugin.cls(Config()).apply(Record("t", "a")).value == "A"
    with pytest.raises(UnknownPlugin):
        load(PluginSettings(str(tmp_path), allow=("entry-points",))).find("shout", ("transformation",))


def test_secrets_are_named(catalog: Catalog) -> None:
    assert secret_keys(take_apart(catalog, GIVEN)) == ["token"]


def test_references_are_resolved_and_redacted(tmp_path: Path) -> None:
    (tmp_path / "pg.properties").write_text("# comment\nuser = bob\npassword=hush=hush\n")
    (tmp_path / "token").write_text("abc123\n")
    resolver = Resolver({"HOST": "db.local"}, [str(tmp_path)])
    given = {
        "url": "postgresql://${env:HOST}/x",
        "password": f"${{file:{tmp_path}/pg.properties:password}}",
        "token": f"${{dir:{tmp_path}:token}}",
        "plain": "$1 ${topic}",
    }
    resolved, texts = resolver.resolve(given)
    assert resolved == {
        "url": "postgresql://db.local/x",
        "password": "hush=hush",
        "token": "abc123",
        "plain": "$1 ${topic}",
    }
    assert Redactor(texts)("no abc123 here, nor hush=hush") == "no ******** here, nor ********"


@pytest.mark.parametrize("value", ["${env:NOPE}", "${file:/etc/hostname:x}", "${file:x}", "${dir:/nope:x}"])
def test_a_reference_that_cannot_be_resolved_is_named(value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\$\{"):
        Resolver({}, [str(tmp_path)]).resolve({"a": value})
