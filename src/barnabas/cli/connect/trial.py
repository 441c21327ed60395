"""``barnabas connect try`` and ``replay``: a connector run here, without Spark and without a worker."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.connect.connector_files import read_connectors
from barnabas.cli.terminal.connection import client_settings, sentence
from barnabas.model.errors import BarnabasError
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.connect.driver.prepared import Prepared


def _prepared(arguments: Namespace) -> Prepared:
    from barnabas.connect.catalog import ALLOWED, PluginSettings
    from barnabas.connect.driver.prepared import Prepared, Spec
    from barnabas.connect.references import Resolver

    found = read_connectors(arguments.file)
    if len(found) != 1:
        raise Failure(f"{arguments.file} has {len(found)} connectors; expected one")
    client = {"bootstrap.servers": arguments.servers or "127.0.0.1:9092", **client_settings(arguments)}
    directory = arguments.plugins or ("plugins" if Path("plugins").is_dir() else None)
    config, resolved = Resolver().resolve(found[0].config)
    return Prepared(Spec(found[0].name, 0, config, frozenset(resolved), PluginSettings(directory, ALLOWED), client))


def try_connector(arguments: Namespace) -> None:
    """Print records before and after each step."""
    from barnabas.connect.trial import Trial

    try:
        trial = Trial(_prepared(arguments))
        count = 0
        for step in trial.run(arguments.records):
            if step.is_first:
                count += 1
                print(f"record {count}")
            print(f"  {step.name:<24} {step.shown}")
    except BarnabasError as error:
        raise Failure(sentence(error)) from error
    print(f"{count} records, {trial.failed} failed; nothing was changed", file=sys.stderr)


def replay(arguments: Namespace) -> None:
    """Write dead letters again."""
    from barnabas.connect.trial import replay_dead_letters

    try:
        outcome: Any = replay_dead_letters(_prepared(arguments), from_beginning=arguments.from_beginning)
    except BarnabasError as error:
        raise Failure(sentence(error)) from error
    print(f"{outcome.read} dead letters read, {outcome.written} written, {outcome.failed} failed again")
