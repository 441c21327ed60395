"""How a command reaches a cluster, and how whatever goes wrong becomes one line.

Every command that talks to a broker takes the options added here and runs its coroutine through :func:`attend`.
"""

from __future__ import annotations

import asyncio
import gc
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from barnabas.client.errors import ClusterUnreachable, RegistryRefused, RegistryUnreachable
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.model.settings import InvalidSetting
from barnabas.ops.failure import Failure

T = TypeVar("T")
S = TypeVar("S", bound=Settings)

SERVERS_VARIABLE: Final = "BARNABAS_BOOTSTRAP_SERVERS"
CLIENT_VARIABLE: Final = "BARNABAS_CLIENT_CONFIG"
PROFILE_VARIABLE: Final = "BARNABAS_PROFILE"
DEFAULT_SERVERS: Final = "127.0.0.1:9092"
# Settings of the schema registry, as Confluent's clients name them; those of brokers know nothing of it.
REGISTRY_URL: Final = "schema.registry.url"
REGISTRY_LOGIN: Final = "schema.registry.basic.auth.user.info"

_HINTS: Final = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: "`barnabas topic list` shows what there is",
    errors.TOPIC_ALREADY_EXISTS: "`--if-not-exists` makes that no error",
    errors.INVALID_REPLICATION_FACTOR: "a topic cannot have more replicas than the cluster has brokers",
    errors.SECURITY_DISABLED: "give the brokers authorizer.class.name and super.users, and start them again",
    errors.GROUP_ID_NOT_FOUND: "`barnabas group list` shows what there is",
    errors.TRANSACTIONAL_ID_NOT_FOUND: "`barnabas txn list` shows what there is",
    errors.ILLEGAL_SASL_STATE: "it asks for no sign-in: leave out security.protocol and sasl.*, also of a profile",
    errors.SASL_AUTHENTICATION_FAILED: "see sasl.username and sasl.password; `barnabas user list` shows who may",
    errors.MESSAGE_TOO_LARGE: "raise the topic's max.message.bytes, or send less at once",
}


def add_connection(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        dest="servers",
        metavar="HOST:PORT,...",
        default=os.environ.get(SERVERS_VARIABLE),
        help=f"where to reach the cluster; ${SERVERS_VARIABLE}, else as the profile says, else {DEFAULT_SERVERS}",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default=os.environ.get(PROFILE_VARIABLE),
        help=f"settings kept by `barnabas profile`; ${PROFILE_VARIABLE}, else the one in use",
    )
    parser.add_argument(
        "--client-config",
        metavar="FILE",
        default=os.environ.get(CLIENT_VARIABLE),
        help=f"client settings, such as how to sign in; ${CLIENT_VARIABLE}",
    )
    parser.add_argument(
        "-X",
        "--property",
        dest="properties",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a client setting, by Kafka's name; repeatable",
    )


def _of_files(arguments: Namespace) -> dict[str, str]:
    """Client settings from the profile, and from the file that was named, here or in the environment; that one wins."""
    from barnabas.cli.terminal.profiles import existing, profile_in_use, read_client_config

    named: str | None = getattr(arguments, "client_config", None)
    profile = getattr(arguments, "profile", None) or profile_in_use()
    found: dict[str, str] = {}
    if profile is not None:
        found |= read_client_config(existing(profile))
    if named is not None:
        from pathlib import Path

        found |= read_client_config(Path(named))
    return found


def client_settings(arguments: Namespace) -> dict[str, str]:
    """What files, the profile and -X say; what was typed wins."""
    typed = {name.replace("_", "."): value for name, value in pairs(arguments.properties).items()}
    return _of_files(arguments) | typed


def settings_of(kind: type[S], arguments: Namespace, **more: Any) -> S:
    """Typed settings from what was typed."""
    values: dict[str, Any] = {"bootstrap.servers": DEFAULT_SERVERS, "client.id": "barnabas-cli"}
    values |= _of_files(arguments)
    if arguments.servers is not None:
        values["bootstrap.servers"] = arguments.servers
    values |= {name.replace("_", "."): value for name, value in more.items()}
    values |= {name.replace("_", "."): value for name, value in pairs(arguments.properties).items()}
    try:
        return kind.of(without_registry(values))
    except InvalidSetting as error:
        raise Failure(str(error)) from error


def without_registry(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in (REGISTRY_URL, REGISTRY_LOGIN)}


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """What KEY=VALUE options say."""
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator:
            raise Failure(f"{text!r}: say KEY=VALUE")
        found[name.strip()] = value
    return found


def attend(work: Coroutine[Any, Any, T], *, is_long: bool = False) -> T:
    """Run a command's coroutine. A long one gets the fastest loop; importing it would cost a short one too much."""
    loop_factory = None
    if is_long:
        gc.enable()
        from barnabas.world.real import new_event_loop

        loop_factory = new_event_loop
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(work)
    except BarnabasError as error:
        raise Failure(sentence(error)) from error


def sentence(error: BarnabasError) -> str:
    """One line that says what is wrong and, where we know it, what to do."""
    if isinstance(error, ClusterUnreachable):
        way_out = "start a broker with `barnabas up`, or name another with --bootstrap-server"
        if not error.is_nobody_there:
            way_out = "if it asks for sign-in or TLS, say how with --client-config FILE or -X security.protocol=…"
        said = str(error).rstrip(": ")
        if said != str(error):  # a handshake that ends without a word
            way_out = (
                "it hung up on the handshake: is TLS spoken there at all? See security.protocol, also of a profile"
            )
        return f"{said}: {way_out}"
    if isinstance(error, RegistryUnreachable):
        from barnabas.cli.terminal.rest_services import SERVICES

        service = SERVICES["registry"]
        if service.missing:
            return (
                f"{error}; `barnabas up` runs no registry because it is not installed here: {service.install}; "
                f"or pass --schema-registry URL"
            )
        return f"{error}; start one with `barnabas up` or `barnabas registry`, or pass --schema-registry URL"
    if isinstance(error, RegistryRefused) and error.status in (401, 403):
        return f"the schema registry refuses: {error}; {REGISTRY_LOGIN}=USER:PASSWORD signs in"
    if isinstance(error, RegistryRefused):
        return f"the schema registry refuses: {error}"
    if isinstance(error, ApiError):
        text = error.message.rstrip().removesuffix(".")
        hint = _HINTS.get(error.error)
        return f"{text} ({error.error.name}){'; ' + hint if hint else ''}"
    return str(error)
