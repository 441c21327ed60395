"""``barnabas acl`` against a broker that checks rights: rules are made, shown, kept to and removed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from barnabas.broker.settings.security import STANDARD_AUTHORIZER
from barnabas.cli.main import main
from barnabas.testing import Broker

SUPER = "User:ANONYMOUS"  # the command line does not sign in here


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    with Broker(settings={"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": SUPER}) as broker:
        yield broker


@pytest.fixture
def acl(guarded: Broker, capsys: pytest.CaptureFixture[str]) -> Iterator[object]:
    def call(*words: str, code: int = 0) -> str:
        assert main(["acl", *words, "-b", guarded.bootstrap_servers]) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    yield call
    main(["acl", "delete", "--yes", "-b", guarded.bootstrap_servers])


def test_a_rule_is_made_listed_and_removed(acl) -> None:  # type: ignore[no-untyped-def]
    made = acl("create", "--allow", "alice", "--operation", "read,describe-configs", "--topic", "orders", "-o", "json")
    rows = json.loads(made)
    assert [(row["principal"], row["operation"], row["name"]) for row in rows] == [
        ("User:alice", "read", "orders"),
        ("User:alice", "describe-configs", "orders"),
    ]
    listed = acl("list", "--principal", "alice")
    assert listed.splitlines()[0].split() == [
        "PRINCIPAL",
        "HOST",
        "PERMISSION",
        "OPERATION",
        "RESOURCE",
        "NAME",
        "PATTERN",
    ]
    assert listed.splitlines()[1].split() == ["User:alice", "*", "allow", "read", "topic", "orders", "literal"]
    assert "read" in acl("delete", "--topic", "orders", "--operation", "read", "--yes")
    assert len(json.loads(acl("list", "-o", "json"))) == 1


def test_a_template_says_all_that_a_program_needs(acl) -> None:  # type: ignore[no-untyped-def]
    words = (
        "--allow",
        "User:app",
        "--template",
        "consumer",
        "--topic",
        "in-",
        "--group",
        "g-",
        "--pattern",
        "prefixed",
    )
    rows = json.loads(acl("create", *words, "-o", "json"))
    assert {(row["resource"], row["operation"], row["pattern"]) for row in rows} == {
        ("topic", "read", "prefixed"),
        ("topic", "describe", "prefixed"),
        ("group", "read", "prefixed"),
    }


def test_an_application_that_makes_topics_of_its_own_has_a_template_too(acl) -> None:  # type: ignore[no-untyped-def]
    names = ("--topic", "app-", "--group", "app-", "--transactional-id", "app-", "--pattern", "prefixed")
    rows = json.loads(acl("create", "--allow", "app", "--template", "streams", *names, "-o", "json"))
    found = {(row["resource"], row["operation"]) for row in rows}
    assert {("topic", "create"), ("topic", "delete"), ("topic", "write"), ("topic", "read")} <= found
    assert {("group", "read"), ("transactional-id", "write"), ("transactional-id", "describe")} <= found
    assert {row["pattern"] for row in rows} == {"prefixed"}


def test_a_dry_run_removes_nothing(acl) -> None:  # type: ignore[no-untyped-def]
    acl("create", "--deny", "eve", "--operation", "all", "--cluster")
    assert "User:eve" in acl("delete", "--principal", "eve", "--dry-run")
    assert "User:eve" in acl("list")


def test_rules_about_a_name_are_found_whatever_their_form(acl) -> None:  # type: ignore[no-untyped-def]
    acl("create", "--allow", "a", "--operation", "read", "--topic", "ord", "--pattern", "prefixed")
    acl("create", "--allow", "b", "--operation", "read", "--topic", "*")
    found = json.loads(acl("list", "--topic", "orders", "--pattern", "match", "-o", "json"))
    assert {row["principal"] for row in found} == {"User:a", "User:b"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "--allow", "a", "--operation", "read"), "about what"),
        (("create", "--topic", "t", "--operation", "read"), "who"),
        (("create", "--allow", "a", "--topic", "t"), "what"),
        (("create", "--allow", "a", "--topic", "t", "--operation", "fly"), "describe-configs"),
        (("create", "--allow", "a", "--cluster", "--template", "producer"), "nothing of a cluster"),
    ],
)
def test_what_is_missing_is_said(acl, words: tuple[str, ...], said: str) -> None:  # type: ignore[no-untyped-def]
    assert said in acl(*words, code=1)


def test_a_broker_without_an_authorizer_says_how_to_get_one(
    shared_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["acl", "list", "-b", shared_broker.bootstrap_servers]) == 1
    error = capsys.readouterr().err
    assert "authorizer.class.name" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "words", [("create", "--allow", "a", "--operation", "read", "--topic", "t"), ("delete", "--topic", "t", "--yes")]
)
def test_what_fails_is_the_error_alone(
    shared_broker: Broker, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert main(["acl", *words, "-b", shared_broker.bootstrap_servers]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("barnabas: ")
    assert main(["acl", *words, "-o", "json", "-b", shared_broker.bootstrap_servers]) == 1
    assert capsys.readouterr().out == "[]\n"
