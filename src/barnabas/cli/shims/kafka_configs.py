"""``kafka-configs.sh``: describe and change settings of topics, brokers and groups; users' passwords and quotas."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.cli.shims.shim import admin_of, carry_out, exactly_one, parser_of, raise_first
from barnabas.cli.terminal.connection import attend
from barnabas.ops.failure import Failure
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.configs import Resource

KINDS: Final = {
    "topics": ("TOPIC", "topic"),
    "brokers": ("BROKER", "broker"),
    "broker-loggers": ("BROKER_LOGGER", "broker-logger"),
    "groups": ("GROUP", "group"),
}
OPTIONS: Final = (*((plural, option) for plural, (_, option) in KINDS.items()), ("users", "user"))
QUOTAS: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
SOURCES: Final = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
DYNAMIC: Final = (1, 2, 3, 6, 8)
# Values in brackets may hold commas: SCRAM-SHA-256=[iterations=4096,password=x]
_ASSIGNMENT: Final = re.compile(r"\s*([^=,\s]+)\s*=\s*(\[[^\]]*\]|[^,]*)\s*(?:,|$)")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("kafka-configs.sh", "Describe or change the settings of an entity.")
    _configure(parser)
    return carry_out(parser, lambda found: attend(_run(found)), arguments)


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--describe", action="store_true")
    add("--alter", action="store_true")
    add("--all", action="store_true", help="with --describe: those left at their default too")
    add("--entity-type", choices=(*KINDS, *QUOTAS))
    add("--entity-name")
    add("--entity-default", action="store_true")
    add("--add-config", metavar="K=V,K=[V,V],...")
    add("--delete-config", metavar="K,K,...")
    for plural, option in OPTIONS:
        add(f"--{option}", metavar="NAME", help=f"the same as --entity-type {plural} --entity-name NAME")
    add("--broker-defaults", action="store_true")


async def _run(arguments: Namespace) -> None:
    action = exactly_one(arguments, "describe", "alter")
    kind, name = _entity(arguments)
    if action == "alter" and arguments.add_config is None and arguments.delete_config is None:
        raise Failure("At least one of --add-config or --delete-config must be specified with --alter")
    added = assignments(arguments.add_config or "")
    deleted = [part.strip() for part in (arguments.delete_config or "").split(",") if part.strip()]
    async with admin_of(arguments) as admin:
        if kind in QUOTAS:
            from barnabas.cli.shims import kafka_configs_users

            await kafka_configs_users.run(admin, action, QUOTAS[kind], name, added, deleted)
        elif action == "describe":
            await _describe(admin, kind, name, is_all=arguments.all)
        else:
            await _alter(admin, kind, name, added, deleted)


def _entity(arguments: Namespace) -> tuple[str, str | None]:
    """Kind and name; the empty name is the default of all, None is every one that there is."""
    for plural, option in OPTIONS:
        name = getattr(arguments, option.replace("-", "_"))
        if name is not None:
            return plural, name
    if arguments.broker_defaults:
        return "brokers", ""
    if arguments.entity_type is None:
        raise Failure("At least one entity type must be specified with --entity-type")
    return arguments.entity_type, "" if arguments.entity_default else arguments.entity_name


def assignments(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    position = 0
    while text[position:].strip():
        match = _ASSIGNMENT.match(text, position)
        if match is None:
            raise Failure(f'Invalid entity config: all configs to be added must be in the format "key=val": {text!r}')
        found[match[1]] = match[2].strip()
        position = match.end()
    return found


def _resource(kind: str, name: str) -> Resource:
    from barnabas.client.admin.configs import Resource, ResourceKind

    return Resource(ResourceKind[KINDS[kind][0]], name)


async def _describe(admin: Admin, kind: str, name: str | None, *, is_all: bool) -> None:
    for each in [name] if name is not None else await _every(admin, kind):
        what = "Default configs" if each == "" else "All configs" if is_all else "Dynamic configs"
        of = "brokers in the cluster" if each == "" else f"{KINDS[kind][1]} {each}"
        print(f"{what} for {of} are:")
        for line in await _lines(admin, kind, each, is_all=is_all):
            print(line)


async def _every(admin: Admin, kind: str) -> list[str]:
    if kind == "topics":
        return [topic.name for topic in await admin.cluster.all_topics()]
    if kind == "groups":
        return [group.group_id for group in await admin.list_groups()]
    brokers = [str(broker.id) for broker in (await admin.describe_cluster()).brokers]
    return brokers if kind == "broker-loggers" else [*brokers, ""]


async def _lines(admin: Admin, kind: str, name: str, *, is_all: bool) -> list[str]:
    resource = _resource(kind, name)
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=resource.kind, resource_name=name, configuration_keys=None
            )
        ],
        include_synonyms=True,
    )
    if kind == "brokers" and name:
        answer = await admin.cluster.call(int(name), request, DescribeConfigsResponse)
    else:
        answer = await admin.cluster.call_any(request, DescribeConfigsResponse)
    (result,) = answer.results
    if result.error_code:
        raise Failure(f"Error while executing config command: {result.error_message}")
    own = {"topics": (1,), "brokers": (2,) if name else (3,), "broker-loggers": (6,), "groups": (8,)}[kind]
    return [
        f"  {row.name}={row.value} sensitive={str(row.is_sensitive).lower()} synonyms={{{_synonyms(row)}}}"
        for row in result.configs
        if is_all or row.config_source in own
    ]


def _synonyms(row: DescribeConfigsResponse.DescribeConfigsResourceResult) -> str:
    return ", ".join(f"{SOURCES.get(each.source, 'UNKNOWN')}:{each.name}={each.value}" for each in row.synonyms)


async def _alter(admin: Admin, kind: str, name: str | None, added: dict[str, str], deleted: list[str]) -> None:
    from barnabas.client.admin.configs import Change, Operation

    if name is None:
        raise Failure("--entity-name or --entity-default must be specified with --alter")
    changes = [Change(key, value.removeprefix("[").removesuffix("]")) for key, value in added.items()]
    changes += [Change(key, None, Operation.DELETE) for key in deleted]
    outcomes = await admin.alter_configs({_resource(kind, name): changes})
    raise_first(outcomes.values(), prefix="Error while executing config command: ")
    of = "default brokers in the cluster" if name == "" else f"{KINDS[kind][1]} {name}"
    print(f"Completed updating {'default ' if name == '' else ''}config for {of.removeprefix('default ')}.")
