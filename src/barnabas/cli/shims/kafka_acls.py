"""``kafka-acls.sh``: list, add and remove rules, as Kafka's AclCommand does."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.cli.shims.shim import admin_of, carry_out, exactly_one, parser_of, raise_first
from barnabas.cli.terminal.connection import attend
from barnabas.model.errors import ApiError
from barnabas.ops.acl_rules import TEMPLATES, Resource, cluster, operation_of, rules
from barnabas.ops.failure import Failure
from barnabas.security.acl import Filter, Operation, PatternType, Permission, ResourceType, Rule

ACTIONS: Final = ("list", "add", "remove")
PATTERNS: Final = {pattern.name.lower(): pattern for pattern in PatternType}
FAILED: Final = "Error while executing ACL command: "


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("kafka-acls.sh", "List, add and remove rules of who may do what.")
    _configure(parser)
    return carry_out(parser, lambda found: attend(_run(found)), arguments)


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    for flag in (*ACTIONS, "producer", "consumer", "idempotent", "force", "cluster"):
        add(f"--{flag}", action="store_true")
    for name in ("topic", "group", "transactional-id", "operation", "principal"):
        add(f"--{name}", action="append", default=[])
    for permission in ("allow", "deny"):
        add(f"--{permission}-principal", action="append", default=[])
        add(f"--{permission}-host", action="append", default=[])
    add("--resource-pattern-type", choices=tuple(PATTERNS), default="literal")


def _resources(arguments: Namespace) -> list[Resource]:
    return [
        *(Resource(ResourceType.TOPIC, name) for name in arguments.topic),
        *(Resource(ResourceType.GROUP, name) for name in arguments.group),
        *([cluster()] if arguments.cluster or arguments.idempotent else []),
        *(Resource(ResourceType.TRANSACTIONAL_ID, name) for name in arguments.transactional_id),
    ]


async def _run(arguments: Namespace) -> None:
    action = exactly_one(arguments, *ACTIONS)
    async with admin_of(arguments) as admin:
        if action == "list":
            found: dict[Rule, None] = {}
            for each in _filters(arguments):
                found |= dict.fromkeys(await admin.describe_acls(each))
            wanted = set(arguments.principal)
            _print("Current ACLs", [rule for rule in found if not wanted or rule.principal in wanted])
            return
        if action == "add":
            made = _rules(arguments)
            _print("Adding ACLs", made)
            raise_first((await admin.create_acls(made)).values(), prefix=FAILED)
            return
        filters = [_exactly(rule) for rule in _rules(arguments)] if _names_rules(arguments) else _filters(arguments)
        _confirm(arguments)
        outcomes = await admin.delete_acls(filters)
        raise_first(outcomes.values(), prefix=FAILED)
        _print("Removed ACLs", [rule for each in outcomes.values() if not isinstance(each, ApiError) for rule in each])


def _rules(arguments: Namespace) -> list[Rule]:
    resources = _resources(arguments)
    if not resources:
        raise Failure("You must specify at least one resource: --topic, --cluster, --group, --transactional-id")
    if not arguments.allow_principal and not arguments.deny_principal:
        raise Failure("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    pattern = PATTERNS[arguments.resource_pattern_type]
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise Failure("A rule is literal or prefixed; match and any are for finding some")
    found: list[Rule] = []
    for permission, principals, hosts in (
        (Permission.ALLOW, arguments.allow_principal, arguments.allow_host),
        (Permission.DENY, arguments.deny_principal, arguments.deny_host),
    ):
        for operations in _operations(arguments):
            found += rules(
                resources, operations, principals=principals, hosts=hosts, pattern=pattern, permission=permission
            )
    return list(dict.fromkeys(found))


def _operations(arguments: Namespace) -> Iterable[dict[ResourceType, tuple[Operation, ...]]]:
    """What may be done to each type of resource: as a producer, as a consumer, or as was said."""
    if arguments.producer:
        extra = {ResourceType.CLUSTER: (Operation.IDEMPOTENT_WRITE,)} if arguments.idempotent else {}
        yield {**TEMPLATES["producer"], **extra}
    if arguments.consumer:
        yield dict(TEMPLATES["consumer"])
    if not arguments.producer and not arguments.consumer:
        named = tuple(operation_of(name) for name in arguments.operation) or (Operation.ALL,)
        yield dict.fromkeys(ResourceType, named)


def _names_rules(arguments: Namespace) -> bool:
    return bool(arguments.allow_principal or arguments.deny_principal)


def _exactly(rule: Rule) -> Filter:
    return Filter(*rule)


def _filters(arguments: Namespace) -> list[Filter]:
    pattern = PATTERNS[arguments.resource_pattern_type]
    anything = (None, None, Operation.ANY, Permission.ANY)
    resources = _resources(arguments)
    if not resources:
        return [Filter(ResourceType.ANY, None, PatternType.ANY, *anything)]
    return [Filter(resource.type, resource.name, pattern, *anything) for resource in resources]


def _confirm(arguments: Namespace) -> None:
    if arguments.force:
        return
    if not sys.stdin.isatty():
        raise Failure("nobody is here to confirm this: say --force")
    if input("Are you sure you want to remove ACLs? (y/n)").strip().lower() not in ("y", "yes"):
        raise Failure("nothing was done")


def _print(what: str, found: Iterable[Rule]) -> None:
    by_resource: dict[tuple[int, str, int], list[Rule]] = {}
    for rule in found:
        by_resource.setdefault((rule.resource_type, rule.resource_name, rule.pattern_type), []).append(rule)
    for (kind, name, pattern), group in by_resource.items():
        of = f"resourceType={ResourceType(kind).name}, name={name}, patternType={PatternType(pattern).name}"
        print(f"{what} for resource `ResourcePattern({of})`:")
        for rule in group:
            permission, operation = Permission(rule.permission_type).name, Operation(rule.operation).name
            print(
                f"\t(principal={rule.principal}, host={rule.host}, operation={operation}, permissionType={permission})"
            )
        print()
