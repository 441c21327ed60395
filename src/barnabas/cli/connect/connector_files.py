"""Connectors in files: YAML or JSON, one or several in a file, a directory of such files. Pure but for reading.

A connector is its keys, ``name`` among them; ``state`` may be RUNNING, PAUSED or STOPPED. Kafka's form with ``name``
and ``config`` is read as well.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.ops.failure import Failure

SUFFIXES: Final = (".yaml", ".yml", ".json")
STATES: Final = ("RUNNING", "PAUSED", "STOPPED")


class ConnectorFile(NamedTuple):
    """A connector as a file has it."""

    path: Path
    name: str
    config: dict[str, str]
    state: str


def read_connectors(path: Path) -> list[ConnectorFile]:
    """Return the connectors of a file, or of all files of a directory."""
    if path.is_dir():
        files = [each for each in sorted(path.iterdir()) if each.suffix in SUFFIXES]
        found = [connector for each in files for connector in _of_file(each)]
    else:
        found = _of_file(path)
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Failure(f"{path}: the connector {twice[0]!r} occurs twice")
    return found


def _of_file(path: Path) -> list[ConnectorFile]:
    try:
        text = path.read_text()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    documents = [json_document(path, text)] if path.suffix == ".json" else _yaml(path, text)
    listed = [each for document in documents for each in (document if isinstance(document, list) else [document])]
    return [connector_of(path, each) for each in listed if each is not None]


def json_document(path: Path, text: str) -> Any:
    """Return the value of a JSON file."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failure(f"{path} is not JSON: {error}") from error


def _yaml(path: Path, text: str) -> list[Any]:
    try:
        import yaml
    except ImportError as error:
        raise Failure("PyYAML is missing: `pip install 'barnabas[connect]'` installs it") from error
    try:
        return list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise Failure(f"{path} is not YAML: {error}") from error


def connector_of(path: Path, value: Any) -> ConnectorFile:
    """Return the connector of a mapping."""
    if not isinstance(value, dict):
        raise Failure(f"{path}: expected a mapping of keys and values, not {type(value).__name__}")
    given = dict(value)
    if isinstance(given.get("config"), dict):
        given = {**given["config"], **{key: given[key] for key in ("name", "state") if key in given}}
    state = str(given.pop("state", "RUNNING")).upper()
    if state not in STATES:
        raise Failure(f"{path}: state {state} is none of {', '.join(STATES)}")
    config: dict[str, str] = {}
    for key, each in given.items():
        if isinstance(each, dict):
            raise Failure(f"{path}: the value of {key} is a mapping; write keys with dots instead")
        if isinstance(each, list):
            config[str(key)] = ",".join(map(str, each))
        elif each is not None:
            config[str(key)] = str(each).lower() if isinstance(each, bool) else str(each)
    if not config.get("name"):
        raise Failure(f"{path}: a connector needs a name")
    return ConnectorFile(path, config["name"], config, state)
