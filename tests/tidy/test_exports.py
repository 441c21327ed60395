"""What others build on keeps its name: a change here is a change for every user and is meant to be noticed."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PUBLIC = {
    "barnabas": ["__version__"],
    "barnabas.testing": ["Broker", "BrokerProcess", "Cluster"],
    "barnabas.testing.plugin": ["broker"],
    "barnabas.streams": ["App", "DeadLetter", "Processor", "Store", "Stream", "Table", "drive", "session"],
    "barnabas.client.cluster.cluster": ["Cluster"],
    "barnabas.client.producer": ["Producer"],
    "barnabas.client.consumer": ["Consumer"],
    "barnabas.client.admin.client": ["Admin"],
    "barnabas.cli.main": ["main"],
    "barnabas.broker.node.node": ["Node"],
    "barnabas.broker.settings.broker": ["BrokerSettings"],
    "barnabas.model.errors": ["ApiError", "BarnabasError", "CorruptBatch", "Malformed"],
    "barnabas.wire.records": ["Record", "decode_all", "decode_batch", "encode_batch"],
}


@pytest.mark.parametrize("module", sorted(PUBLIC))
def test_public_names_are_there(module: str) -> None:
    found = importlib.import_module(module)
    for name in PUBLIC[module]:
        assert hasattr(found, name), f"{module}.{name}"
    said = {name for name in PUBLIC[module] if not name.startswith("__")}
    assert said <= set(getattr(found, "__all__", said))


def test_the_package_costs_nothing_to_import() -> None:
    """The command and the plugin are imported in every shell and every test run of others."""
    code = "import sys, barnabas, barnabas.testing.plugin; print([m for m in sys.modules if m.startswith('barnabas.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "broker.node" not in loaded
    assert "barnabas.wire" not in loaded
