"""``barnabas consume --decode`` and ``barnabas produce --schema-id`` against a broker and a schema registry."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer
from google.protobuf import descriptor_pb2, timestamp_pb2
from registry_server import RegistryServer

from barnabas.cli.main import main
from barnabas.testing import Broker

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
SAID = '{"id": 7, "item": "tea", "price": "12.50", "at": "2026-01-31T12:00:00+00:00"}'


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


class Cli:
    def __init__(self, broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
        self._broker = broker
        self._capfd = capfd

    def run(self, *words: str) -> tuple[int, str, str]:
        self._capfd.readouterr()
        code = main([*words, "-b", self._broker.bootstrap_servers])
        said = self._capfd.readouterr()
        return code, said.out, said.err

    def __call__(self, *words: str) -> str:
        code, out, err = self.run(*words)
        assert (code, err) == (0, "")
        return out

    def send(self, topic: str, *values: bytes, key: bytes | None = None) -> None:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap_servers})
        for value in values:
            producer.produce(topic, value, key=key)
        assert producer.flush(20) == 0


@pytest.fixture
def cli(shared_broker: Broker, capfd: pytest.CaptureFixture[str]) -> Cli:
    return Cli(shared_broker, capfd)


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_is_written_as_avro_and_comes_back(cli: Cli, registry: RegistryServer, name: str) -> None:
    number = registry.add(json.dumps(ORDER))
    where = ("--schema-registry", registry.url)
    cli("produce", name, "-v", SAID, "-k", "k", "--schema-id", str(number), *where)
    assert cli("consume", name, "-e", "-f", "%V{big8}", "-n", "1") == chr(20)
    assert cli("consume", name, "-e", "--decode", "avro", "-f", "%k %v\n", *where) == f"k {SAID}\n"
    (row,) = rows(cli("consume", name, "-e", "--decode", "avro", "--json", *where))
    assert (row["value"], row["value_format"], row["value_schema_id"]) == (json.loads(SAID), "avro", number)
    shown = cli("consume", name, "-e", "--decode", "auto", "--filter", "value.id == 7", "-f", "%v", *where)
    assert shown == SAID
    assert cli("consume", name, "-e", "--decode", "auto", "--filter", "value.id == 8", *where) == ""


def test_the_schema_of_the_topic_is_the_last_of_its_subject(cli: Cli, registry: RegistryServer, name: str) -> None:
    registry.add('"long"', subject=f"{name}-value")
    last = registry.add('"string"', subject=f"{name}-value")
    key = registry.add('"string"', subject=f"{name}-key")
    where = ("--schema-registry", registry.url)
    cli("produce", name, "-k", "17", "-v", '"tea"', "--schema-topic", "--schema-key-id", "topic", *where)
    (row,) = rows(cli("consume", name, "-e", "--decode", "avro", "--decode-key", "avro", "--json", *where))
    assert (row["key"], row["key_schema_id"], row["value"], row["value_schema_id"]) == ("17", key, "tea", last)


def test_what_does_not_fit_the_schema_is_one_line(cli: Cli, registry: RegistryServer, name: str) -> None:
    number = str(registry.add(json.dumps(ORDER)))
    where = ("--schema-registry", registry.url)
    for said, reason in (
        ('{"id": 7, "itm": "tea"}', "shop.Order has no field 'itm'; it has id, item, price, at"),
        ('{"id": "seven"}', "cannot be encoded"),
        ("tea", "this is not JSON"),
        ("[1]", "is an object of fields"),
    ):
        code, out, err = cli.run("produce", name, "-v", said, "--schema-id", number, *where)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert reason in err
        assert "Traceback" not in err
    code, _, err = cli.run("produce", name, "-v", "1", "--schema-id", "99", *where)
    assert (code, "the registry knows no schema 99" in err) == (1, True)
    code, _, err = cli.run("produce", name, "-v", "1", "--schema-topic", *where)
    assert (code, f"the registry has no subject '{name}-value'" in err) == (1, True)


def test_a_record_that_cannot_be_decoded_is_a_line_and_the_others_are_shown(
    cli: Cli, registry: RegistryServer, name: str
) -> None:
    number = registry.add('"string"')
    cli.send(name, b"plain", bytes([0, 0, 0, 0, number, 6]) + b"tea", bytes([0, 0, 0, 0, 77, 6]) + b"tea")
    words = ("consume", name, "-e", "--decode", "avro", "--schema-registry", registry.url)
    code, out, err = cli.run(*words)
    assert (code, out) == (1, "plain\ntea\n\0\0\0\0M\6tea\n")
    assert err.splitlines() == [
        f"barnabas: {name}-0 at offset 0: the value cannot be decoded: there is no schema id in front (in b'plain')",
        f"barnabas: {name}-0 at offset 2: the value cannot be decoded: the registry knows no schema 77",
    ]
    code, out, err = cli.run(*words, "--json")
    assert (code, err) == (1, "")
    first, second, third = rows(out)
    assert first["value_error"].startswith("there is no schema id")
    assert (first["value"], second["value"], third["value_error"]) == (
        "plain",
        "tea",
        "the registry knows no schema 77",
    )
    assert cli.run(*words, "-n", "1", "-o", "1")[::2] == (0, ""), "nothing is said of what is not shown"


def test_auto_tells_what_it_sees_and_says_what_it_cannot_know(cli: Cli, registry: RegistryServer, name: str) -> None:
    number = registry.add('"string"')
    registered = bytes([0, 0, 0, 0, number, 6]) + b"tea"
    cli.send(
        name, registered, b'{"a": 1}', b"{text", msgspec.msgpack.encode({"b": [1, b"\xff"]}), b"\xff\xfe", bytes(8)
    )
    words = ("consume", name, "-e", "--decode", "auto")
    shown = cli(*words, "--schema-registry", registry.url)
    assert shown.splitlines() == ["tea", '{"a": 1}', "{text", '{"b": [1, "/w=="]}', "fffe", "00" * 8]
    found = rows(cli(*words, "--json", "--schema-registry", registry.url))
    assert [row["value_format"] for row in found] == ["avro", "json", "string", "msgpack", "hex", "hex"]
    code, out, err = cli.run(*words)
    assert (code, out.splitlines()[0]) == (0, registered.hex()), "a guess is no failure"
    assert err == (
        f"barnabas: {name}-0 at offset 0: the value cannot be decoded: it may have been written with schema {number}: "
        "--schema-registry says where to ask\n"
    )


@pytest.mark.parametrize(
    ("form", "data", "shown"),
    [
        ("hex", b"\x01\xff", "01ff"),
        ("base64", b"\x01\xff", "Af8="),
        ("string", b"tea", "tea"),
        ("json", b'{"a":1}', '{"a": 1}'),
        ("json", b'\0\0\0\0\7{"a":1}', '{"a": 1}'),
        ("msgpack", b"\x81\xa1a\x01", '{"a": 1}'),
    ],
)
def test_what_needs_no_registry(cli: Cli, name: str, form: str, data: bytes, shown: str) -> None:
    cli.send(name, data, key=data)
    words = ("--decode", form, "--decode-key", form)
    assert cli("consume", name, "-e", "-f", "%k %v", *words) == f"{shown} {shown}"


@pytest.mark.parametrize("form", ["string", "json", "msgpack"])
def test_bytes_that_are_something_else(cli: Cli, name: str, form: str) -> None:
    cli.send(name, b"\xff{")
    code, out, err = cli.run("consume", name, "-e", "--decode", form, "--json")
    (row,) = rows(out)
    assert (code, err, row["value_base64"]) == (1, "", b64encode(b"\xff{").decode())
    assert row["value_error"]


@pytest.mark.parametrize("form", ["auto", "json", "msgpack"])
def test_what_is_nested_too_deeply_is_said_to_be_so(cli: Cli, name: str, form: str) -> None:
    for depth in (90, 300, 600, 950, 5000):
        data = b"\x91" * depth + b"\xc0" if form == "msgpack" else b"[" * depth + b"]" * depth
        cli.send(name, data)
    code, out, err = cli.run("consume", name, "-e", "--decode", form, "--json")
    found = rows(out)
    assert (code in (0, 1), err, len(found)) == (True, "", 5)
    assert "value_error" not in found[0]
    assert all(
        form == "auto" or "nested" in row["value_error"] or "recursion" in row["value_error"] for row in found[1:]
    )


def test_half_a_character_is_printed_as_json_writes_it(cli: Cli, name: str) -> None:
    cli.send(name, b'{"a": "\\ud800"}', b'"\\ud800"')
    assert [row["value"] for row in rows(cli("consume", name, "-e", "--decode", "json", "--json"))] == [
        {"a": "\ud800"},
        "\ud800",
    ]
    assert cli("consume", name, "-e", "--decode", "json").splitlines() == ['{"a": "\\ud800"}', "\\ud800"]


def test_bytes_go_round_as_hexadecimal(cli: Cli, name: str, tmp_path: Path) -> None:
    cli.send(name, b"\xff\x00")
    file = tmp_path / "records.json"
    file.write_text(cli("consume", name, "-e", "--json", "--decode", "hex"))
    cli("produce", f"{name}-copy", "-i", str(file), "-f", "json", "-o", "none")
    assert cli("consume", f"{name}-copy", "-e", "-f", "%v{hex}") == "ff00"


def test_batches_and_groups_are_decoded_too(cli: Cli, name: str) -> None:
    cli.send(name, b"\xff")
    assert cli("consume", name, "-e", "--decode", "hex", "-f", "%e %v\n") == "0 ff\n"
    assert cli("consume", name, "-e", "--decode", "hex", "-g", f"{name}-group") == "ff\n"


def protobuf_file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.dependency.append("shop/item.proto")
    file.message_type.add(name="First").field.add(name="n", number=1, type=3, label=1)
    order = file.message_type.add(name="Order")
    order.field.add(name="order_id", number=1, type=3, label=1)
    order.field.add(name="at", number=2, type=11, type_name=".google.protobuf.Timestamp", label=1)
    order.field.add(name="item", number=3, type=11, type_name=".shop.Item", label=1)
    order.nested_type.add(name="Line").field.add(name="text", number=1, type=9, label=1)
    return file


def text_of(file: Any) -> str:
    return b64encode(file.SerializeToString()).decode()


def test_protobuf_by_the_descriptor_of_the_registry(cli: Cli, registry: RegistryServer, name: str) -> None:
    item = descriptor_pb2.FileDescriptorProto(name="item", package="shop", syntax="proto3")
    item.message_type.add(name="Item").field.add(name="name", number=1, type=9, label=1)
    registry.add(text_of(item), kind="PROTOBUF", subject="shop/item.proto")
    reference = {"name": "shop/item.proto", "subject": "shop/item.proto", "version": 1}
    number = str(registry.add(text_of(protobuf_file()), kind="PROTOBUF", references=(reference,)))
    where = ("--schema-registry", registry.url)
    said = {"order_id": "7", "at": "2026-01-31T12:00:00Z", "item": {"name": "tea"}}
    words = ("produce", name, "--schema-id", number, *where, "-o", "none")
    cli(*words, "-v", json.dumps(said), "--schema-type", "shop.Order")
    cli(*words, "-v", '{"text": "x"}', "--schema-type", "Order.Line")
    cli(*words, "-v", '{"n": 3}')
    shown = cli("consume", name, "-e", "--decode", "proto", *where)
    assert [json.loads(line) for line in shown.splitlines()] == [said, {"text": "x"}, {"n": "3"}]
    assert any("format=serialized" in path for path in registry.requests)
    code, _, err = cli.run(*words, "-v", "{}", "--schema-type", "Odrer")
    assert (code, "has no message 'Odrer'; it has First, Order, Order.Line" in err) == (1, True)
    code, _, err = cli.run(*words, "-v", '{"m": 3}')
    assert (code, 'no field named "m"' in err) == (1, True)
    assert timestamp_pb2.DESCRIPTOR.name == "google/protobuf/timestamp.proto"


def test_a_registry_that_gives_only_the_source_is_told_so(cli: Cli, registry: RegistryServer, name: str) -> None:
    number = registry.add('syntax = "proto3"; message M {}', kind="PROTOBUF")
    cli.send(name, bytes([0, 0, 0, 0, number, 0]))
    code, _, err = cli.run("consume", name, "-e", "--decode", "proto", "--schema-registry", registry.url)
    assert (code, "gives the source of the .proto file, and not its descriptor" in err) == (1, True)


def test_avro_that_uses_types_of_other_subjects(cli: Cli, registry: RegistryServer, name: str) -> None:
    item = {"type": "record", "name": "Item", "namespace": "shop", "fields": [{"name": "name", "type": "string"}]}
    registry.add(json.dumps(item), subject="item")
    both = {"type": "record", "name": "Both", "fields": [{"name": "item", "type": ["null", "shop.Item"]}]}
    reference = {"name": "shop.Item", "subject": "item", "version": 1}
    number = str(registry.add(json.dumps(both), references=(reference,)))
    where = ("--schema-registry", registry.url)
    for said in ('{"item": {"name": "tea"}}', '{"item": {"shop.Item": {"name": "tea"}}}', '{"item": null}'):
        cli("produce", name, "-v", said, "--schema-id", number, *where, "-o", "none")
    shown = cli("consume", name, "-e", "--decode", "avro", *where).splitlines()
    assert shown == ['{"item": {"name": "tea"}}', '{"item": {"name": "tea"}}', '{"item": null}']


def test_the_registry_may_be_in_the_environment_or_a_profile(
    cli: Cli, registry: RegistryServer, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_HOME", str(tmp_path))
    number = registry.add('"string"')
    registry.login = "Basic " + b64encode(b"me:hush").decode()
    cli.send(name, bytes([0, 0, 0, 0, number, 6]) + b"tea")
    words = ("consume", name, "-e", "--decode", "avro")
    code, _, err = cli.run(*words)
    assert (code, err.count("\n"), "--schema-registry URL" in err) == (1, 1, True)
    monkeypatch.setenv("BARNABAS_SCHEMA_REGISTRY", registry.url)
    code, _, err = cli.run(*words)
    assert (code, "Unauthorized" in err, "basic.auth.user.info" in err) == (1, True, True)
    login = "schema.registry.basic.auth.user.info=me:hush"
    assert cli(*words, "-X", login) == "tea\n"
    monkeypatch.delenv("BARNABAS_SCHEMA_REGISTRY")
    assert main(["profile", "create", "here", "--use", "-X", login, "-X", f"schema.registry.url={registry.url}"]) == 0
    assert cli(*words) == "tea\n"
    assert cli("topic", "list"), "what has nothing to do with a registry takes the profile too"
    assert main(["profile", "show", "here"]) == 0


def test_a_profile_does_not_show_the_password_of_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BARNABAS_HOME", str(tmp_path))
    url = "-Xschema.registry.url=http://me:hush@there:8081"
    assert main(["profile", "create", "p", "-X", "schema.registry.basic.auth.user.info=me:hush", url]) == 0
    assert main(["profile", "show", "p"]) == 0
    shown = capsys.readouterr().out
    assert "hush" not in shown
    assert "http://me:(secret)@there:8081" in shown
    assert main(["profile", "create", "p", "-X", "schema.registry.urk=x"]) == 1


def test_a_registry_that_does_not_answer_is_one_line(cli: Cli, registry: RegistryServer, name: str) -> None:
    cli.send(name, bytes([0, 0, 0, 0, 1, 6]) + b"tea")
    registry.close()
    code, out, err = cli.run("consume", name, "-e", "--decode", "avro", "--schema-registry", registry.url)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "the schema registry at 127.0.0.1" in err


@pytest.mark.parametrize(
    ("form", "module", "sentence"),
    [
        ("avro", "fastavro", "this needs fastavro: pip install 'barnabas[avro]'"),
        ("proto", "google.protobuf.message", "pip install 'barnabas[protobuf]'"),
        ("msgpack", "msgspec", "this needs msgspec: pip install 'barnabas[structs]'"),
    ],
)
def test_what_is_not_installed_is_named_with_what_installs_it(
    cli: Cli,
    registry: RegistryServer,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    module: str,
    sentence: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    code, out, err = cli.run("consume", name, "-e", "--decode", form, "--schema-registry", registry.url)
    assert (code, out, err.count("\n"), sentence in err) == (1, "", 1, True)


def test_auto_goes_on_without_a_package_and_says_so(
    cli: Cli, registry: RegistryServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = registry.add('"string"')
    cli.send(name, bytes([0, 0, 0, 0, number, 6]) + b"tea", b"text")
    monkeypatch.setitem(sys.modules, "fastavro", None)
    code, out, err = cli.run("consume", name, "-e", "--decode", "auto", "--schema-registry", registry.url)
    assert (code, out.splitlines()[1], "pip install 'barnabas[avro]'" in err) == (0, "text", True)


def test_a_tombstone_stays_one(cli: Cli, registry: RegistryServer, name: str) -> None:
    number = str(registry.add('"string"'))
    where = ("--schema-registry", registry.url)
    cli("produce", name, "-k", "k", "-v", "", "-Z", "--schema-id", number, *where)
    (row,) = rows(cli("consume", name, "-e", "--decode", "avro", "--json", *where))
    assert row["value"] is None


def test_options_that_say_nothing_alone(cli: Cli, name: str) -> None:
    for words in (("--schema-type", "M"), ("--schema-id", "x"), ("--schema-id", "1")):
        code, _, err = cli.run("produce", name, "-v", "1", *words)
        assert (code, err.count("\n")) == (1, 1)
