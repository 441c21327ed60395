"""``barnabas schema``, ``produce --schema`` and ``consume --decode``: schemas from the command line to the records."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.cli.records.schema import VERBS
from barnabas.testing import Broker, RegistryProcess

USER = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
WITH_AGE = {**USER, "fields": [*USER["fields"], {"name": "age", "type": "int", "default": 0}]}
WITH_NEED = {**USER, "fields": [*USER["fields"], {"name": "age", "type": "int"}]}

Say = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[str, str]]:
    with Broker() as broker, RegistryProcess(broker.bootstrap_servers) as registry:
        yield broker.bootstrap_servers, registry.url


@pytest.fixture
def say(servers: tuple[str, str], capfd: pytest.CaptureFixture[str]) -> Say:
    def said(*words: str) -> tuple[int, str, str]:
        code = main([*words, "-b", servers[0], "--schema-registry", servers[1]])
        out, err = capfd.readouterr()
        return code, out, err

    return said


def test_schemas_are_created_listed_compared_and_deleted(say: Say, tmp_path: Path) -> None:
    files = {}
    for name, content in (("user", USER), ("age", WITH_AGE), ("need", WITH_NEED)):
        files[name] = str(tmp_path / f"{name}.avsc")
        Path(files[name]).write_text(json.dumps(content))
    code, out, _ = say("schema", "create", "s-value", "--schema", files["user"], "-o", "json")
    assert code == 0
    (created,) = json.loads(out)
    assert (created["subject"], created["version"], created["type"]) == ("s-value", 1, "AVRO")
    assert say("schema", "check", "s-value", "--schema", files["age"])[:2] == (0, "compatible\n")
    code, _, err = say("schema", "check", "s-value", "--schema", files["need"])
    assert code == 1
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in err
    code, _, err = say("schema", "create", "s-value", "--schema", files["need"])
    assert code == 1
    assert "incompatible" in err
    assert say("schema", "create", "s-value", "--schema", files["age"])[0] == 0
    code, out, _ = say("schema", "diff", "s-value", "--from", "1", "--to", "2")
    assert '+      "name": "age",' in out.splitlines()
    assert json.loads(say("schema", "get", "s-value", "--version", "1")[1]) == USER
    assert json.loads(say("schema", "get", "--id", str(created["id"]), "-o", "json")[1])["type"] == "AVRO"
    rows = json.loads(say("schema", "list", "s-value", "-o", "json")[1])
    assert [row["version"] for row in rows] == [1, 2]
    assert say("schema", "delete", "s-value", "--version", "2", "--yes")[0] == 0
    assert say("schema", "delete", "s-value", "--yes")[0] == 0
    assert say("schema", "delete", "s-value", "--yes", "--permanent")[0] == 0
    code, _, err = say("schema", "get", "s-value")
    assert code == 1
    assert "40401" in err or "not found" in err


def test_levels_and_modes_are_shown_and_set(say: Say) -> None:
    assert json.loads(say("schema", "compat", "-o", "json")[1]) == [
        {"subject": "(global)", "compatibility": "BACKWARD"}
    ]
    assert "FULL" in say("schema", "compat", "c", "--set", "full")[1]
    assert "READONLY" in say("schema", "mode", "c", "--set", "readonly")[1]
    assert json.loads(say("schema", "mode", "-o", "json")[1]) == [{"subject": "(global)", "mode": "READWRITE"}]


@pytest.mark.parametrize(
    ("suffix", "text", "record"),
    [
        (".avsc", json.dumps(USER), '{"name": "ann"}'),
        (".json", '{"type":"object","properties":{"name":{"type":"string"}}}', '{"name": "ann"}'),
        (".proto", 'syntax = "proto3"; message User { string name = 1; }', '{"name": "ann"}'),
    ],
)
def test_records_are_encoded_by_a_file_and_decoded_by_the_registry(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, text: str, record: str
) -> None:
    topic = f"typed{suffix.replace('.', '-')}"
    path = tmp_path / f"user{suffix}"
    path.write_text(text)
    typed = tmp_path / "typed"
    typed.write_text(f"{record}\n")
    with typed.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, _, err = say("produce", topic, "--schema", str(path))
    assert code == 0, err
    code, out, _ = say("consume", topic, "-o", "start", "--exit", "--decode", "auto", "-f", "%v\\n")
    assert json.loads(out) == {"name": "ann"}


def test_mistakes_are_explained(say: Say, tmp_path: Path) -> None:
    strange = tmp_path / "user.xyz"
    strange.write_text("{}")
    assert ".avsc" in say("schema", "create", "x", "--schema", str(strange))[2]
    assert "No such file" in say("schema", "create", "x", "--schema", str(tmp_path / "none.avsc"))[2]
    assert (
        "NAME:SUBJECT:VERSION"
        in say("schema", "create", "x", "--schema", __file__, "--type", "avro", "--reference", "a")[2]
    )
    assert "SUBJECT or --id" in say("schema", "get")[2]
    assert "Invalid schema" in say("schema", "create", "x", "--schema", __file__, "--type", "avro")[2]


def test_a_registry_that_is_not_there_is_explained(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["schema", "list", "--schema-registry", "http://127.0.0.1:1"]
    assert main(words) == 1
    assert "start one with `barnabas up`" in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    assert main(words) == 1
    assert "pip install 'barnabas[registry]'" in capfd.readouterr().err


def test_the_example_of_every_verb_works_as_it_is_typed(
    servers: tuple[str, str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The examples of ``--help``, in an order in which each finds what it needs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", servers[0])
    monkeypatch.setenv("BARNABAS_SCHEMA_REGISTRY", servers[1])
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))

    def run(command: str) -> str:
        words = shlex.split(command)
        assert words.pop(0) == "barnabas"
        assert main(words) == 0, capfd.readouterr().err
        return capfd.readouterr().out

    for verb in ("create", "get", "list", "check", "diff", "compat", "mode"):
        run(VERBS[verb].example)
    typed, command = example_of("produce", capfd).split(" | ")
    (tmp_path / "input").write_text(shlex.split(typed)[1])
    with (tmp_path / "input").open() as given:
        monkeypatch.setattr("sys.stdin", given)
        run(command)
    assert run(example_of("consume", capfd)) == '{"id": 1}\n'
    run(VERBS["delete"].example)
    assert set(VERBS) == {"create", "get", "list", "check", "diff", "compat", "mode", "delete"}


def example_of(command: str, capfd: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    return " ".join(capfd.readouterr().out.partition("Example: ")[2].split())
