"""``barnabas profile``: create, list, show, use, edit, delete: names for clusters and for how to sign in to them.

A profile is a file of client settings (see ``profiles.py``), so whatever a client can be told can be in one. Options
and environment variables win over it.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from barnabas.cli.terminal.config_file import properties
from barnabas.cli.terminal.connection import pairs, without_registry
from barnabas.cli.terminal.output import NOBODY, print_rows
from barnabas.cli.terminal.profiles import (
    existing,
    path_of,
    profile_in_use,
    profile_names,
    read_client_config,
    shown,
    use_profile,
    write_profile,
)
from barnabas.cli.terminal.verbs import Verb, add_yes, configure_verbs, confirm, nothing_more, run_verb
from barnabas.client.settings.client import Settings
from barnabas.model.settings import InvalidSetting
from barnabas.ops.failure import Failure


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS, connects=False)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


def _add_name(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")


def _configure_create(parser: ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("-b", "--bootstrap-server", dest="servers", metavar="HOST:PORT,...", help="where it is")
    parser.add_argument("--client-config", type=Path, metavar="FILE", help="client settings to begin with")
    parser.add_argument(
        "-X", "--property", dest="properties", action="append", default=[], metavar="KEY=VALUE", help="repeatable"
    )
    parser.add_argument("--use", action="store_true", help="use it from now on")


def _create(arguments: Namespace) -> None:
    """An existing one gets new settings; those that are not named stay."""
    path = path_of(arguments.name)
    values = read_client_config(path) if path.exists() else {}
    if arguments.client_config is not None:
        values |= read_client_config(arguments.client_config)
    values |= pairs(arguments.properties)
    if arguments.servers is not None:
        values["bootstrap.servers"] = arguments.servers
    check_profile(values)
    write_profile(arguments.name, values)
    if arguments.use:
        use_profile(arguments.name)
    print(f"{arguments.name}: written{', and in use' if arguments.use else ''}")


def _list(arguments: Namespace) -> None:
    in_use = profile_in_use()
    found = {name: read_client_config(path_of(name)) for name in profile_names()}
    print_rows(
        arguments,
        ("NAME", "IN USE", "SERVERS", "SECURITY"),
        [
            (
                name,
                "yes" if name == in_use else "no",
                values.get("bootstrap.servers", NOBODY),
                " ".join(filter(None, (values.get("security.protocol"), values.get("sasl.mechanism")))) or NOBODY,
            )
            for name, values in found.items()
        ],
    )


def _show(arguments: Namespace) -> None:
    values = read_client_config(existing(arguments.name))
    rows = [(key, shown(key, value)) for key, value in sorted(values.items())]
    print_rows(arguments, ("SETTING", "VALUE"), rows)


def _configure_use(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="without a name none is used any more")


def _use(arguments: Namespace) -> None:
    if arguments.name is not None:
        existing(arguments.name)
    use_profile(arguments.name)
    print("no profile is in use" if arguments.name is None else f"{arguments.name}: in use")


def _edit(arguments: Namespace) -> None:
    from barnabas.cli.terminal.editor import edited

    path = path_of(arguments.name)
    text = path.read_text() if path.exists() else "bootstrap.servers=127.0.0.1:9092\n"
    values = dict(properties(edited(text, name=f"{arguments.name}.properties")))
    check_profile(values)
    write_profile(arguments.name, values)
    print(f"{arguments.name}: written")


def _configure_delete(parser: ArgumentParser) -> None:
    _add_name(parser)
    add_yes(parser)


def _delete(arguments: Namespace) -> None:
    path = existing(arguments.name)
    confirm(f"Delete {path}?", arguments)
    path.unlink()
    if profile_in_use() == arguments.name:
        use_profile(None)
    print(f"{arguments.name}: deleted")


def check_profile(values: dict[str, str]) -> None:
    """A name that no client setting has is a mistake now, and not at the next command."""
    try:
        Settings.of(without_registry(values))
    except InvalidSetting as error:
        raise Failure(str(error)) from error


VERBS: Final = {
    "create": Verb(_configure_create, _create, "write a profile; settings that are not named stay as they are"),
    "list": Verb(nothing_more, _list, "list profiles, and which one is in use"),
    "show": Verb(_add_name, _show, "show the settings of a profile"),
    "use": Verb(_configure_use, _use, "let every command use a profile"),
    "edit": Verb(_add_name, _edit, "open a profile in $EDITOR"),
    "delete": Verb(_configure_delete, _delete, "delete a profile"),
}
