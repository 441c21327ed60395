"""What all commands with verbs share: the table of verbs, the admin client, asking first, and saying how it went.

``topic``, ``group``, ``config``, ``acl`` and the rest each have a table ``VERBS`` and nothing of this; how an answer is
printed is ``output.py``'s. A command that talks to no broker uses only the table.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from barnabas.cli.terminal.connection import add_connection, sentence, settings_of
from barnabas.cli.terminal.output import add_output, is_table, print_value
from barnabas.client.settings.client import Settings
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin

T = TypeVar("T")
OFFSET_OPTIONS: Final = ("-o", "--offset", "--to", "--since")


class Verb(NamedTuple):
    configure: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], None]
    help: str
    example: str = ""  # a command as it is typed


def configure_verbs(parser: ArgumentParser, verbs: Mapping[str, Verb], *, connects: bool = True) -> None:
    """Every verb can be told in which form to answer and, unless it asks nobody, where the cluster is."""
    entries = parser.add_subparsers(metavar="VERB", required=True)
    for name, verb in verbs.items():
        entry = entries.add_parser(name, help=verb.help, description=f"{verb.help[0].upper()}{verb.help[1:]}.")
        if verb.example:
            entry.epilog = f"Example: {verb.example}"
        verb.configure(entry)
        add_output(entry)
        if connects:
            add_connection(entry)
        entry.set_defaults(run=verb.run)


def run_verb(arguments: Namespace) -> None:
    arguments.run(arguments)


def nothing_more(_: ArgumentParser) -> None:
    """The options of a verb that has none of its own."""


@asynccontextmanager
async def admin_of(arguments: Namespace) -> AsyncIterator[Admin]:
    """Fails at once where no broker is; people do not want to wait a minute to hear it."""
    from barnabas.client.admin.client import Admin

    async with Admin(settings_of(Settings, arguments)) as admin:
        await admin.cluster.open()
        yield admin


def add_yes(parser: ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def confirm(question: str, arguments: Namespace) -> None:
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise Failure("nobody is here to confirm this: say --yes")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise Failure("nothing was done")


async def check_runs(admin: Admin, broker: int) -> None:
    """Whoever asks a broker that is not there hears so at once, and not after a minute of trying."""
    cluster = await admin.describe_cluster()
    known = [each.id for each in cluster.brokers]
    if broker not in known:
        raise Failure(f"there is no broker {broker}; the cluster has {', '.join(map(str, known))}")
    if broker in cluster.fenced:
        raise Failure(f"broker {broker} does not run, or is not heard of; start it first")


def partition_of(text: str) -> TopicPartition:
    """A partition as people write it: orders-0."""
    topic, dash, index = text.rpartition("-")
    if not (topic and dash and index.isascii() and index.isdigit()):
        raise Failure(f"{text!r} names no partition; write it like orders-0")
    return TopicPartition(topic, int(index))


class Outcome(NamedTuple):
    """What became of one thing that a command was to do."""

    name: object
    error: ApiError | None = None
    done: str = ""
    details: Mapping[str, Any] = {}


def outcomes_of(answers: Mapping[Any, object], *, done: str = "") -> list[Outcome]:
    return [
        Outcome(name, answer) if isinstance(answer, ApiError) else Outcome(name, done=done)
        for name, answer in answers.items()
    ]


def report(arguments: Namespace, outcomes: Iterable[Outcome]) -> None:
    """A line for each success, one on standard error for each failure; any failure fails the command."""
    outcomes = list(outcomes)
    if is_table(arguments):
        for each in outcomes:
            if each.error is None and each.done:
                print(f"{each.name}: {each.done}")
    else:
        print_value(arguments, [_as_value(each) for each in outcomes])
    complain(outcomes)


def complain(outcomes: Iterable[Outcome]) -> None:
    """Only what went wrong; for commands that print what went well in a form of their own."""
    failed = [each for each in outcomes if each.error is not None]
    for each in failed:
        said = sentence(each.error)  # type: ignore[arg-type]
        about = "" if each.name is None or said.startswith(f"{each.name}: ") else f"{each.name}: "
        print(f"barnabas: {about}{said}", file=sys.stderr)
    if failed:
        raise Failure


def _as_value(outcome: Outcome) -> dict[str, Any]:
    if outcome.error is not None:
        return {"name": str(outcome.name), "error": outcome.error.error.name, "message": outcome.error.message}
    return {"name": str(outcome.name), "outcome": outcome.done, **outcome.details}


def matching(patterns: Iterable[str], items: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """The items whose name any of the regular expressions matches; all of them if there is none."""
    import re

    try:
        compiled = [re.compile(pattern) for pattern in patterns]
    except re.error as error:
        raise Failure(f"{error.pattern!r} is no regular expression: {error}") from error
    return [item for item in items if not compiled or any(pattern.search(name(item)) for pattern in compiled)]


def join_offsets(words: list[str]) -> list[str]:
    """``-o -10m`` looks like two options to the parser; together they are one word."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in OFFSET_OPTIONS and word[:1] == "-" and word[1:2].isdigit():
            separator = "=" if joined[-1].startswith("--") else ""
            joined[-1] = f"{joined[-1]}{separator}{word}"
        else:
            joined.append(word)
    return joined


def now_ms() -> int:
    return time.time_ns() // 1_000_000
