"""``barnabas user``: create, list, delete: who can sign in by SCRAM, kept in the cluster itself.

A password is asked for on the terminal or read from standard input, so that it stands in no history of commands.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from barnabas.cli.connection import add_connection, attend, settings_of
from barnabas.cli.failure import Failure
from barnabas.cli.output import add_output, print_json, print_table
from barnabas.client.settings import Settings
from barnabas.security.scram import ITERATIONS_DEFAULT, ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin_users import UserCredential

DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"


def configure(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    create = verbs.add_parser("create", help="create a user, or give one a new password")
    create.add_argument("name", metavar="USER")
    create.add_argument("-m", "--mechanism", choices=tuple(MECHANISMS), default=DEFAULT_MECHANISM)
    create.add_argument(
        "-i",
        "--iterations",
        type=int,
        default=ITERATIONS_DEFAULT,
        metavar="N",
        help=f"how slow guessing is made, {ITERATIONS_MIN} to {ITERATIONS_MAX}",
    )
    add_connection(create)
    create.set_defaults(run=_create)
    listing = verbs.add_parser("list", help="list users and how they can sign in")
    add_output(listing)
    add_connection(listing)
    listing.set_defaults(run=_list)
    delete = verbs.add_parser("delete", help="delete a user; connections that are open stay open")
    delete.add_argument("name", metavar="USER")
    delete.add_argument("-m", "--mechanism", choices=tuple(MECHANISMS), help="only this way of signing in")
    add_connection(delete)
    delete.set_defaults(run=_delete)


def run(arguments: Namespace) -> None:
    arguments.run(arguments)


def _create(arguments: Namespace) -> None:
    if not ITERATIONS_MIN <= arguments.iterations <= ITERATIONS_MAX:
        raise Failure(f"--iterations must be {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    password = _password(arguments.name)

    async def work() -> None:
        from barnabas.world.real import real_world

        async with _admin(arguments) as admin:
            world = real_world()
            mechanism = MECHANISMS[arguments.mechanism]
            try:
                await admin.set_password(world, arguments.name, password, mechanism, iterations=arguments.iterations)
            finally:
                await world.workers.close()

    attend(work())
    print(f"{arguments.name}: can sign in by {arguments.mechanism}")


def _password(user: str) -> str:
    if sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"Password for {user}: ")
        if getpass("Again: ") != password:
            raise Failure("the two are not the same; nothing was done")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise Failure("an empty password lets everyone in: type one, or pipe it to this command")
    return password


def _list(arguments: Namespace) -> None:
    found = attend(_users(arguments))
    if arguments.output == "json":
        print_json([entry._asdict() for entry in found])
    else:
        print_table(("USER", "MECHANISM", "ITERATIONS"), found, right=("ITERATIONS",))


async def _users(arguments: Namespace) -> tuple[UserCredential, ...]:
    async with _admin(arguments) as admin:
        return await admin.describe_users()


def _delete(arguments: Namespace) -> None:
    async def work() -> list[str]:
        async with _admin(arguments) as admin:
            has = [entry.mechanism for entry in await admin.describe_users() if entry.user == arguments.name]
            wanted = [name for name in has if arguments.mechanism in (None, name)]
            await admin.remove_user(arguments.name, [MECHANISMS[name] for name in wanted])
            return wanted

    removed = attend(work())
    if not removed:
        raise Failure(f"there is no such user {arguments.name!r}; `barnabas user list` shows who there is")
    print(f"{arguments.name}: deleted ({', '.join(removed)})")


@asynccontextmanager
async def _admin(arguments: Namespace) -> AsyncIterator[Admin]:
    from barnabas.client.admin import Admin

    async with Admin(settings_of(Settings, arguments)) as admin:
        await admin.cluster.open()
        yield admin
