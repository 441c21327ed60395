"""A command imports what it uses and nothing else: what another one needs must not make this one wait."""

from __future__ import annotations

import socket
import subprocess
import sys
from functools import cache

import pytest

HEAVY = ("fastavro", "google", "msgspec", "pyarrow", "pyspark", "rich", "uvloop", "zipfile")
ELSEWHERE = (
    "barnabas.broker",
    "barnabas.ops.records.avro_json",
    "barnabas.cli.files.debug_bundle",
    "barnabas.ops.records.decoding",
    "barnabas.ops.doctor.facts",
    "barnabas.ops.records.schemas",
    "barnabas.client.serdes.registry",
    "barnabas.raft",
    "barnabas.storage",
)
HELP_MODULES_MAX = 5  # of ours: the package, the command line, the table of commands, what a failure is
CODE = """
import sys
from barnabas.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


@cache
def imported(*words: str) -> frozenset[str]:
    done = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=False, timeout=60)
    return frozenset(done.stderr.splitlines()[-1].split())


def of(found: frozenset[str], names: tuple[str, ...]) -> list[str]:
    return sorted(each for each in found if any(each == name or each.startswith(f"{name}.") for name in names))


def nobody() -> str:
    """An address where nothing listens: commands import all that they need before they hear it."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return f"127.0.0.1:{held.getsockname()[1]}"


def test_the_help_needs_nearly_nothing() -> None:
    found = imported("--help")
    ours = of(found, ("barnabas",))
    assert len(ours) <= HELP_MODULES_MAX, ours
    assert of(found, (*HEAVY, "asyncio", "json", "ssl")) == []


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "list"),
        ("group", "list"),
        ("config", "get", "topic", "t"),
        ("consume", "--help"),
        ("produce", "--help"),
        ("debug", "bundle", "--help"),
        ("doctor", "--help"),
    ],
    ids=" ".join,
)
def test_a_command_leaves_alone_what_others_need(words: tuple[str, ...]) -> None:
    where = () if "--help" in words else ("-b", nobody())
    found = imported(*words, *where)
    assert "barnabas.cli.terminal.connection" in found, "the command was not even read"
    assert of(found, (*HEAVY, *ELSEWHERE)) == []


def test_consume_imports_what_decodes_only_when_it_is_asked_to() -> None:
    plain = imported("consume", "t", "-b", nobody(), "-X", "default.api.timeout.ms=1")
    assert of(plain, (*set(HEAVY) - {"uvloop"}, *ELSEWHERE)) == []  # who stays long gets the fastest loop
    decoding = imported("consume", "t", "--decode", "hex", "-b", nobody(), "-X", "default.api.timeout.ms=1")
    assert "barnabas.ops.records.decoding" in decoding
    assert of(decoding, ("fastavro", "google", "msgspec", "barnabas.ops.records.schemas")) == []
