"""``barnabas streams reset``: delete internal topics, offsets and checkpoint of an application."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.terminal.connection import attend, settings_of
from barnabas.cli.terminal.output import is_table, print_value
from barnabas.cli.terminal.verbs import add_yes, admin_of, confirm
from barnabas.client.settings.client import Settings
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.streams.catalog.reset import Reset

NOTE = "application"  # directory of the checkpoint that has its note


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("application", metavar="APP", help="id of the application")
    parser.add_argument("--dry-run", action="store_true", help="show what would be deleted")
    parser.add_argument("--force", action="store_true", help="reset an application that seems to be running")
    add_yes(parser)


def run(arguments: Namespace) -> None:
    reset = attend(_plan(arguments))
    checkpoint = _local(reset.checkpoint)
    shown = {
        "topics": reset.topics,
        "groups": reset.groups,
        "checkpoint": str(checkpoint) if checkpoint is not None else None,
    }
    if not is_table(arguments):
        print_value(arguments, shown)
    else:
        for kind, names in shown.items():
            for name in names if isinstance(names, list) else [names]:
                if name:
                    print(f"{kind.removesuffix('s')} {name}")
    if arguments.dry_run:
        return
    confirm(f"Delete all of this, so that {arguments.application} starts from the beginning?", arguments)
    attend(_execute(arguments, reset))
    if checkpoint is not None:
        shutil.rmtree(checkpoint)
    if is_table(arguments):
        print(f"{arguments.application} was reset; output topics were not changed")
        if reset.checkpoint and checkpoint is None:
            print(f"its checkpoint is not on this machine: delete {reset.checkpoint} before the next start")


async def _plan(arguments: Namespace) -> Reset:
    from barnabas.spark.pipelines.status import published
    from barnabas.streams.catalog.reset import plan_reset

    name = arguments.application
    running = [each for each in await published(settings_of(Settings, arguments)) if each.name == name]
    if any(each.state == "running" for each in running) and not arguments.force:
        raise Failure(f"application {name} is running on {running[0].host}; stop it first, or pass --force")
    async with admin_of(arguments) as admin:
        reset = await plan_reset(admin.cluster, name)
    if not (reset.topics or reset.groups or reset.checkpoint):
        raise Failure(f"the cluster knows no application {name}; `barnabas streams list` shows all")
    return reset


async def _execute(arguments: Namespace, reset: Reset) -> None:
    from barnabas.streams.catalog.reset import execute_reset

    async with admin_of(arguments) as admin:
        await execute_reset(admin.cluster, reset)


def _local(checkpoint: str) -> Path | None:
    """The checkpoint's directory, if it is one of this machine and has the note of an application."""
    path = Path(checkpoint.removeprefix("file://"))
    return path if checkpoint and "://" not in str(path) and (path / NOTE).is_dir() else None
