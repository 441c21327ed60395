"""``barnabas streams``: list, describe, query and reset Streams applications; none of it needs Spark."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.pipelines import streams_get, streams_reset, streams_serve
from barnabas.cli.pipelines.app_files import apps_of
from barnabas.cli.terminal.connection import attend, settings_of
from barnabas.cli.terminal.output import is_table, print_facts, print_rows, print_value
from barnabas.cli.terminal.verbs import Verb, admin_of, configure_verbs, nothing_more, run_verb
from barnabas.client.settings.client import Settings
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.spark.pipelines.status import PipelineStatus
    from barnabas.streams.catalog.application import Application

    Listed = tuple[Application, PipelineStatus | None, int | None]


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    try:
        run_verb(arguments)
    except ImportError as error:
        raise Failure(f"{error}: run `pip install 'barnabas[structs]'`") from error


async def _listed(arguments: Namespace, application_id: str | None = None) -> list[Listed]:
    """Applications that the cluster knows, the status that `barnabas run` published last, and the lag of each group."""
    from barnabas.client.group.lag import lags
    from barnabas.spark.pipelines.status import published
    from barnabas.streams.catalog.topic import applications, required

    statuses = {each.name: each for each in await published(settings_of(Settings, arguments))}
    found: list[Listed] = []
    async with admin_of(arguments) as admin:
        if application_id is None:
            known = await applications(admin.cluster)
        else:
            known = {application_id: await required(admin.cluster, application_id)}
        for name, each in known.items():
            committed = await admin.group_offsets(name)
            behind = await lags(admin.cluster, {place: entry.offset for place, entry in committed.items()})
            lag = sum(entry.records for entry in behind.values()) if behind else None
            found.append((each, statuses.get(name), lag))
    return found


def _list(arguments: Namespace) -> None:
    found = attend(_listed(arguments))
    if not found:
        print("no applications; `barnabas run FILE` starts one", file=sys.stderr)
    columns = ("APPLICATION", "STATE", "TASKS", "STORES", "LAG", "CHECKPOINT")
    rows = [
        (
            each.application_id,
            "stopped" if status is None else status.state,
            each.tasks,
            ", ".join(store.name for store in each.stores) or "-",
            "-" if lag is None else lag,
            each.checkpoint,
        )
        for each, status, lag in found
    ]
    print_rows(arguments, columns, rows, right=("TASKS", "LAG"))


def _configure_describe(parser: ArgumentParser) -> None:
    parser.add_argument("application", metavar="APP", help="id of an application, or a Python file with applications")


def _describe(arguments: Namespace) -> None:
    if arguments.application.endswith(".py"):
        _describe_file(arguments)
        return
    ((each, status, lag),) = attend(_listed(arguments, arguments.application))
    if not is_table(arguments):
        import msgspec

        print_value(arguments, msgspec.to_builtins(each) | {"lag": lag, "state": status.state if status else "stopped"})
        return
    facts: dict[str, Any] = {
        "application": each.application_id,
        "state": "stopped" if status is None else status.state,
        "lag": "nothing read yet" if lag is None else lag,
        "tasks": each.tasks,
        "checkpoint": each.checkpoint,
        "internal topics": ", ".join(each.internal_topics),
    }
    facts |= {f"store {store.name}": _store(store) for store in each.stores}
    print_facts(facts)
    print(f"\n{each.topology}\n{each.execution}", end="")


def _store(store: Any) -> str:
    return f"{store.kind}, keys {store.key}, values {store.value}, topic {store.topic}"


def _describe_file(arguments: Namespace) -> None:
    for index, app in enumerate(apps_of(Path(arguments.application))):
        if index:
            print()
        print(f"{app.application_id}\n{app.describe()}", end="")


VERBS: Final = {
    "list": Verb(nothing_more, _list, "list applications, their stores and their lag"),
    "describe": Verb(_configure_describe, _describe, "show the topology, stores, topics and lag of an application"),
    "get": Verb(streams_get.configure, streams_get.run, "read a store: a key, a range, windows or versions"),
    "reset": Verb(streams_reset.configure, streams_reset.run, "delete the state and the offsets of an application"),
    "serve": Verb(streams_serve.configure, streams_serve.run, "answer queries of stores and metrics over HTTP"),
}
