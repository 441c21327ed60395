"""``barnabas acl``: list, create, delete: who may do what, kept in the cluster itself.

What the words mean is in ``acl_rules.py``. A cluster without an authorizer refuses all of it, and the line that says so
says how to get one.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Final

from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import is_table, print_table, print_value
from barnabas.cli.terminal.verbs import (
    Outcome,
    Verb,
    add_yes,
    admin_of,
    complain,
    configure_verbs,
    confirm,
    run_verb,
)
from barnabas.model.errors import ApiError
from barnabas.ops.acl_rules import (
    PATTERNS,
    RESOURCES,
    TEMPLATES,
    Resource,
    cluster,
    operation_of,
    principal_of,
    row_of,
    rules,
)
from barnabas.ops.failure import Failure
from barnabas.security.acl import Filter, Operation, PatternType, Permission, ResourceType, Rule

COLUMNS: Final = ("PRINCIPAL", "HOST", "PERMISSION", "OPERATION", "RESOURCE", "NAME", "PATTERN")


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


def _add_resources(parser: ArgumentParser) -> None:
    for name in RESOURCES:
        attribute = name.replace("-", "_")
        if name == "cluster":
            parser.add_argument("--cluster", action="store_true", help="the cluster itself")
        else:
            help_text = f"a {name}, by its name or * for all; repeatable"
            parser.add_argument(
                f"--{name}", dest=attribute, action="append", default=[], metavar="NAME", help=help_text
            )


def _resources(arguments: Namespace) -> list[Resource]:
    found = [cluster()] if arguments.cluster else []
    for name, kind in RESOURCES.items():
        if name != "cluster":
            found += [Resource(kind, each) for each in getattr(arguments, name.replace("-", "_"))]
    return found


def _configure_create(parser: ArgumentParser) -> None:
    who = parser.add_argument
    who("--allow", action="append", default=[], metavar="PRINCIPAL", help="who may, such as alice or User:alice")
    who("--deny", action="append", default=[], metavar="PRINCIPAL", help="who may not, whatever else allows it")
    who(
        "--host", action="append", default=[], metavar="ADDRESS", help="only from there; repeatable (default: anywhere)"
    )
    who("--operation", action="append", default=[], metavar="NAME,...", help="read, write, describe, all, ...")
    who("--template", choices=tuple(TEMPLATES), help="instead of operations: all that such a program needs")
    who("--pattern", choices=tuple(PATTERNS), default="literal", help="names are whole, or the beginning of names")
    _add_resources(parser)


def _create(arguments: Namespace) -> None:
    wanted = list(_wanted(arguments))

    async def work() -> dict[Rule, ApiError | None]:
        async with admin_of(arguments) as admin:
            return await admin.create_acls(wanted)

    outcomes = attend(work())
    created = [rule for rule, error in outcomes.items() if error is None]
    _report(arguments, created, [Outcome(rule.resource_name, error) for rule, error in outcomes.items() if error])


def _wanted(arguments: Namespace) -> list[Rule]:
    resources = _resources(arguments)
    if not resources:
        raise Failure("about what? Say --topic, --group, --transactional-id or --cluster")
    if not arguments.allow and not arguments.deny:
        raise Failure("who? Say --allow PRINCIPAL or --deny PRINCIPAL")
    if bool(arguments.operation) == bool(arguments.template):
        raise Failure("what? Say --operation NAME or --template, one of the two")
    named = [operation_of(name) for text in arguments.operation for name in text.split(",")]
    operations = TEMPLATES[arguments.template] if arguments.template else dict.fromkeys(RESOURCES.values(), named)
    missing = [kind for kind in dict.fromkeys(resource.type for resource in resources) if kind not in operations]
    if missing:
        raise Failure(f"a {arguments.template} needs nothing of a {missing[0].name.lower()}")
    found: list[Rule] = []
    for permission, principals in ((Permission.ALLOW, arguments.allow), (Permission.DENY, arguments.deny)):
        found += rules(
            resources,
            operations,
            principals=map(principal_of, principals),
            hosts=arguments.host,
            pattern=PATTERNS[arguments.pattern],
            permission=permission,
        )
    return found


def _configure_filters(parser: ArgumentParser) -> None:
    parser.add_argument("--principal", metavar="PRINCIPAL", help="only about this one")
    parser.add_argument("--host", metavar="ADDRESS", help="only from there")
    parser.add_argument("--operation", metavar="NAME", help="only this operation")
    parser.add_argument("--permission", choices=("allow", "deny"))
    patterns = (*PATTERNS, "match", "any")
    parser.add_argument("--pattern", choices=patterns, default="any", help="match: all that are about such a name")
    _add_resources(parser)


def _filters(arguments: Namespace) -> list[Filter]:
    pattern = {**PATTERNS, "match": PatternType.MATCH, "any": PatternType.ANY}[arguments.pattern]
    tail = (
        None if arguments.principal is None else principal_of(arguments.principal),
        arguments.host,
        Operation.ANY if arguments.operation is None else operation_of(arguments.operation),
        Permission.ANY if arguments.permission is None else Permission[arguments.permission.upper()],
    )
    resources = _resources(arguments)
    if not resources:
        return [Filter(ResourceType.ANY, None, pattern, *tail)]
    return [Filter(resource.type, resource.name, pattern, *tail) for resource in resources]


def _list(arguments: Namespace) -> None:
    filters = _filters(arguments)

    async def work() -> list[Rule]:
        async with admin_of(arguments) as admin:
            found: dict[Rule, None] = {}
            for each in filters:
                found |= dict.fromkeys(await admin.describe_acls(each))
            return sorted(found)

    _show(arguments, attend(work()))


def _configure_delete(parser: ArgumentParser) -> None:
    _configure_filters(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    add_yes(parser)


def _delete(arguments: Namespace) -> None:
    if arguments.dry_run:
        _list(arguments)
        return
    filters = _filters(arguments)
    confirm("Delete all rules that match?", arguments)

    async def work() -> dict[Filter, list[Rule] | ApiError]:
        async with admin_of(arguments) as admin:
            return await admin.delete_acls(filters)

    outcomes = attend(work())
    removed = [rule for found in outcomes.values() if not isinstance(found, ApiError) for rule in found]
    failed = [Outcome(None, found) for found in outcomes.values() if isinstance(found, ApiError)]
    _report(arguments, sorted(set(removed)), failed)


def _report(arguments: Namespace, done: list[Rule], failed: list[Outcome]) -> None:
    """Where nothing was done because it failed, the error says it all; only programs want an empty list too."""
    if done or not failed or not is_table(arguments):
        _show(arguments, done)
    complain(failed)


def _show(arguments: Namespace, found: list[Rule]) -> None:
    rows = [row_of(rule) for rule in found]
    if is_table(arguments):
        print_table(COLUMNS, [list(row.values()) for row in rows], arguments=arguments)
    else:
        print_value(arguments, rows)


VERBS: Final = {
    "list": Verb(_configure_filters, _list, "list the rules of access"),
    "create": Verb(_configure_create, _create, "add rules; those that exist stay as they are"),
    "delete": Verb(_configure_delete, _delete, "delete the rules that match"),
}
