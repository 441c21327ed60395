"""``barnabas debug bundle``: one archive with what somebody needs who is asked why a cluster is not well.

It is written whatever fails on the way: what could not be asked is named in it, and here. ``debug_bundle.py`` says what
is in it.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas.cli.serve.running import DATA_DIRECTORY
from barnabas.cli.terminal.connection import attend, client_settings, sentence
from barnabas.cli.terminal.output import is_table, print_value
from barnabas.cli.terminal.verbs import Verb, admin_of, configure_verbs, run_verb
from barnabas.model.errors import BarnabasError
from barnabas.ops.failure import Failure
from barnabas.ops.units import size

if TYPE_CHECKING:
    from barnabas.cli.files.debug_steps import Taken

SECONDS_MAX: Final = 20.0
CONFIG_FILE: Final = "server.properties"
OWN_FILES: Final = 2  # what is in every archive: the manifest, and what this is


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


def _configure_bundle(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("-f", "--file", type=Path, metavar="FILE", help="the archive (default barnabas-debug-DATE-TIME.zip)")
    add("--data-dir", type=Path, default=Path(DATA_DIRECTORY), metavar="PATH", help="whose brokers, if they run here")
    add(
        "--http",
        dest="addresses",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="the barnabas.http.port of a broker that does not run here, for its metrics; repeatable",
    )
    add("--seconds", type=float, default=SECONDS_MAX, metavar="N", help=f"for each step (default {SECONDS_MAX:g})")


def _bundle(arguments: Namespace) -> None:
    from barnabas.cli.files.debug_bundle import write_archive
    from barnabas.cli.files.redaction import Redaction

    path: Path = arguments.file or Path(_name())
    if path.exists():
        raise Failure(f"{path} is there already: name another file with -f")
    if not path.absolute().parent.is_dir():
        raise Failure(f"there is no directory {path.parent}: name another file with -f")
    if arguments.seconds <= 0:
        raise Failure("--seconds must be more than 0")
    secrets = _secrets(arguments)
    taken = attend(_collect(arguments))
    size_bytes = write_archive(path, taken, secrets)
    files = OWN_FILES + sum(bool(each.text) for each in taken)
    clean = Redaction(secrets)
    failed = {each.name: clean(each.error) for each in taken if not each.text and each.error}
    if not is_table(arguments):
        print_value(arguments, {"file": str(path), "bytes": size_bytes, "files": files, "failed": failed})
        return
    print(f"{path}: {files} files, {size(size_bytes)}")
    for name, reason in failed.items():
        print(f"  without {name}: {reason}")


async def _collect(arguments: Namespace) -> list[Taken]:
    from barnabas.cli.files.debug_bundle import Asked, Collection
    from barnabas.cli.files.debug_steps import Taken

    collection = Collection(Asked(arguments.data_dir, arguments.addresses, arguments.seconds))
    try:
        async with admin_of(arguments) as admin:
            await collection.of_cluster(admin)
    except BarnabasError as error:
        collection.taken.append(Taken("cluster.json", "the cluster", error=sentence(error)))
    await collection.of_here()
    return collection.taken


def _name() -> str:
    import time

    return time.strftime("barnabas-debug-%Y%m%d-%H%M%S.zip")


def _secrets(arguments: Namespace) -> list[str]:
    """Of our own settings, of the environment, and of brokers whose files are here: they go, wherever they stand."""
    from barnabas.cli.files.redaction import secrets_in
    from barnabas.cli.terminal.profiles import read_client_config

    ours = {name.replace("_", "."): value for name, value in os.environ.items() if name.startswith("BARNABAS_")}
    found = secrets_in(client_settings(arguments)) + secrets_in(ours)
    for path in (arguments.data_dir / CONFIG_FILE, *sorted(arguments.data_dir.glob(f"*/{CONFIG_FILE}"))):
        if path.is_file():
            found += secrets_in(read_client_config(path))
    return found


VERBS: Final = {
    "bundle": Verb(_configure_bundle, _bundle, "write an archive that shows what a cluster is like, without secrets"),
}
