"""What the stand-ins share: Kafka's common flags, files of client settings, and how a failure is said.

One file beside this one for each script. A flag that would have no effect here is not accepted.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.terminal.output import silence
from barnabas.model.errors import ApiError
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin

FAILED: Final = 1
_LOGIN: Final = re.compile(r'\b(username|password)\s*=\s*(?:"([^"]*)"|([^\s;]+))')


def parser_of(script: str, description: str) -> ArgumentParser:
    parser = ArgumentParser(prog=script, description=description, allow_abbrev=False)
    parser.add_argument("--bootstrap-server", dest="servers", required=True, metavar="HOST:PORT,...")
    parser.add_argument("--command-config", metavar="FILE", help="client settings, as Kafka's clients have them")
    return parser


def carry_out(parser: ArgumentParser, work: Callable[[Namespace], int | None], arguments: Sequence[str] | None) -> int:
    """Run a script. What goes wrong is one line on standard error, and an exit code of 1."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = work(parser.parse_args(words))
        sys.stdout.flush()
    except Failure as failure:
        if failure.args:
            print(failure, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        silence()
        return 0
    return int(code or 0)


def exactly_one(arguments: Namespace, *names: str) -> str:
    """Which of several actions was asked for."""
    chosen = [name for name in names if getattr(arguments, name.replace("-", "_"))]
    if len(chosen) != 1:
        raise Failure(f"Command must include exactly one action: {', '.join(f'--{name}' for name in names)}")
    return chosen[0]


def client_values(arguments: Namespace, *properties: Iterable[str]) -> dict[str, Any]:
    """The settings of a client: from its file, then from KEY=VALUE options."""
    from barnabas.cli.terminal.config_file import properties as read_properties
    from barnabas.cli.terminal.connection import pairs

    values: dict[str, Any] = {"client.id": "barnabas-cli"}
    if arguments.command_config is not None:
        try:
            values |= dict(read_properties(Path(arguments.command_config).read_text()))
        except OSError as error:
            raise Failure(f"{arguments.command_config}: {error.strerror}") from error
    for each in properties:
        values |= pairs(each)
    login = values.pop("sasl.jaas.config", None)
    if login is not None:
        values |= {f"sasl.{found[1]}": found[2] or found[3] for found in _LOGIN.finditer(login)}
    return {**values, "bootstrap.servers": arguments.servers}


@asynccontextmanager
async def admin_of(arguments: Namespace) -> AsyncIterator[Admin]:
    from barnabas.client.admin.client import Admin
    from barnabas.client.settings.client import Settings
    from barnabas.model.settings import InvalidSetting

    try:
        settings = Settings.of(client_values(arguments))
    except InvalidSetting as error:
        raise Failure(str(error)) from error
    async with Admin(settings) as admin:
        await admin.cluster.open()
        yield admin


def raise_first(outcomes: Iterable[object], *, prefix: str = "") -> None:
    """Fail with the first error among the outcomes, in its own words."""
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            raise Failure(f"{prefix}{outcome.message}")
