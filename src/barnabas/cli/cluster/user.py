"""``barnabas user``: create, list, delete: who can sign in by SCRAM, kept in the cluster itself.

A password is asked for on the terminal or read from standard input, so that it stands in no history of commands.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import is_table, print_table, print_value
from barnabas.cli.terminal.verbs import (
    Outcome,
    Verb,
    add_yes,
    admin_of,
    configure_verbs,
    confirm,
    nothing_more,
    report,
    run_verb,
)
from barnabas.ops.failure import Failure
from barnabas.security.scram import ITERATIONS_DEFAULT, ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS

if TYPE_CHECKING:
    from barnabas.client.admin.users import UserCredential

DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def _configure_create(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="USER")
    parser.add_argument("-m", "--mechanism", choices=tuple(MECHANISMS), default=DEFAULT_MECHANISM)
    parser.add_argument(
        "-i",
        "--iterations",
        type=int,
        default=ITERATIONS_DEFAULT,
        metavar="N",
        help=f"how slow guessing is made, {ITERATIONS_MIN} to {ITERATIONS_MAX}",
    )


def _configure_delete(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="USER")
    parser.add_argument("-m", "--mechanism", choices=tuple(MECHANISMS), help="only this way of signing in")
    add_yes(parser)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


def _create(arguments: Namespace) -> None:
    if not ITERATIONS_MIN <= arguments.iterations <= ITERATIONS_MAX:
        raise Failure(f"--iterations must be {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    password = _password(arguments.name)

    async def work() -> None:
        from barnabas.world.real import real_world

        async with admin_of(arguments) as admin:
            world = real_world()
            mechanism = MECHANISMS[arguments.mechanism]
            try:
                await admin.set_password(world, arguments.name, password, mechanism, iterations=arguments.iterations)
            finally:
                await world.workers.close()

    attend(work())
    report(arguments, [Outcome(arguments.name, done=f"can sign in by {arguments.mechanism}")])


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
    if is_table(arguments):
        print_table(("USER", "MECHANISM", "ITERATIONS"), found, right=("ITERATIONS",), arguments=arguments)
    else:
        print_value(arguments, [entry._asdict() for entry in found])


async def _users(arguments: Namespace) -> tuple[UserCredential, ...]:
    async with admin_of(arguments) as admin:
        return await admin.describe_users()


def _delete(arguments: Namespace) -> None:
    confirm(f"Delete the user {arguments.name}?", arguments)

    async def work() -> list[str]:
        async with admin_of(arguments) as admin:
            has = [entry.mechanism for entry in await admin.describe_users() if entry.user == arguments.name]
            wanted = [name for name in has if arguments.mechanism in (None, name)]
            await admin.remove_user(arguments.name, [MECHANISMS[name] for name in wanted])
            return wanted

    removed = attend(work())
    if not removed:
        raise Failure(f"there is no such user {arguments.name!r}; `barnabas user list` shows who there is")
    report(arguments, [Outcome(arguments.name, done=f"deleted ({', '.join(removed)})")])


VERBS: Final = {
    "create": Verb(_configure_create, _create, "create a user, or give one a new password"),
    "list": Verb(nothing_more, _list, "list users and how they can sign in"),
    "delete": Verb(_configure_delete, _delete, "delete a user; connections that are open stay open"),
}
