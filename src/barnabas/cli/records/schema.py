"""``barnabas schema``: create, get, list, check, diff and delete schemas of a registry; its compatibility and mode.

Works with any registry that speaks Confluent's REST API. A schema is a file whose suffix says its kind, or ``--type``.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from barnabas.cli.records.schema_registry import add_registry, needed_registry
from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import is_table, print_rows, print_value
from barnabas.cli.terminal.verbs import Verb, add_yes, configure_verbs, confirm, run_verb
from barnabas.ops.failure import Failure
from barnabas.ops.records.encoding import SUFFIXES, schema_of_file

if TYPE_CHECKING:
    from barnabas.client.serdes.registry import Registry, Schema, SubjectVersion

T = TypeVar("T")
Version = int | Literal["latest"]

TYPES: Final = ("avro", "json", "protobuf")
LEVELS: Final = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
MODES: Final = ("READWRITE", "READONLY", "IMPORT")


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


def _registry(arguments: Namespace) -> Registry:
    return needed_registry(arguments, why="this command")


def _asked(work: Coroutine[Any, Any, T]) -> T:
    return attend(work)


def _add_file(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--schema", required=True, metavar="FILE", help=f"file of the schema: {SUFFIXES}")
    add("--type", choices=TYPES, help="kind of the schema, if the file's suffix does not say it")
    add(
        "--reference",
        action="append",
        default=[],
        metavar="NAME:SUBJECT:VERSION",
        help="another schema that this one refers to; repeatable",
    )


def _schema(arguments: Namespace) -> Schema:
    from barnabas.client.serdes.registry import Reference

    schema = schema_of_file(arguments.schema, arguments.type.upper() if arguments.type else None)
    references = []
    for text in arguments.reference:
        name, _, rest = text.partition(":")
        subject, _, version = rest.rpartition(":")
        if not (name and subject and version.isdecimal()):
            raise Failure(f"--reference {text!r} must be NAME:SUBJECT:VERSION")
        references.append(Reference(name, subject, int(version)))
    return schema._replace(references=tuple(references))


def _version(text: str) -> Version:
    if text == "latest":
        return "latest"
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise Failure(f"{text!r} is not a version: pass a number from 1, or latest")
    return int(text)


# --- create, get, list --------------------------------------------------------------------------------------------


def _configure_create(parser: ArgumentParser) -> None:
    parser.add_argument("subject", metavar="SUBJECT", help="such as orders-value for the values of the topic orders")
    _add_file(parser)
    parser.add_argument("--normalize", action="store_true", help="let the registry normalize the schema first")
    add_registry(parser)


def _create(arguments: Namespace) -> None:
    schema, registry = _schema(arguments), _registry(arguments)

    async def work() -> SubjectVersion:
        await registry.register(arguments.subject, schema, normalize=arguments.normalize)
        return await registry.lookup(arguments.subject, schema)

    _print_versions(arguments, [_asked(work())])


def _configure_get(parser: ArgumentParser) -> None:
    parser.add_argument("subject", nargs="?", metavar="SUBJECT")
    parser.add_argument("--version", default="latest", metavar="N", help="version of the subject (default latest)")
    parser.add_argument("--id", type=int, metavar="N", help="id of the schema, instead of a subject")
    parser.add_argument("--deleted", action="store_true", help="find soft-deleted versions too")
    add_registry(parser)


def _get(arguments: Namespace) -> None:
    """The text alone, so that it can go to a file; everything about it as JSON or YAML."""
    registry = _registry(arguments)
    if (arguments.subject is None) == (arguments.id is None):
        raise Failure("pass SUBJECT or --id")
    if arguments.id is not None:
        schema = _asked(registry.schema(arguments.id))
        shown: dict[str, Any] = {"id": arguments.id, **_as_value(schema)}
    else:
        version = _version(arguments.version)
        found = _asked(registry.version(arguments.subject, version, deleted=arguments.deleted))
        schema, shown = found.schema, _version_value(found)
    if is_table(arguments):
        print(_pretty(schema))
    else:
        print_value(arguments, shown)


def _configure_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "subjects", nargs="*", metavar="SUBJECT", help="list all versions of these (default: all subjects)"
    )
    parser.add_argument("--deleted", action="store_true", help="list soft-deleted ones too")
    add_registry(parser)


def _list(arguments: Namespace) -> None:
    """The latest version of every subject, or every version of some."""
    registry, deleted = _registry(arguments), arguments.deleted

    async def work() -> list[SubjectVersion]:
        found = []
        for subject in arguments.subjects or await registry.subjects(deleted=deleted):
            versions = await registry.versions(subject, deleted=deleted)
            for version in versions if arguments.subjects else versions[-1:]:
                found.append(await registry.version(subject, version, deleted=deleted))  # noqa: PERF401
        return found

    _print_versions(arguments, _asked(work()))


def _print_versions(arguments: Namespace, versions: list[SubjectVersion]) -> None:
    rows = [(each.subject, each.version, each.id, each.schema.kind) for each in versions]
    print_rows(arguments, ("SUBJECT", "VERSION", "ID", "TYPE"), rows, right=("VERSION", "ID"))


def _version_value(found: SubjectVersion) -> dict[str, Any]:
    return {"subject": found.subject, "version": found.version, "id": found.id, **_as_value(found.schema)}


def _as_value(schema: Schema) -> dict[str, Any]:
    return {"type": schema.kind, "references": [each._asdict() for each in schema.references], "schema": schema.text}


def _pretty(schema: Schema) -> str:
    if schema.kind == "PROTOBUF":
        return schema.text.rstrip("\n")
    try:
        return json.dumps(json.loads(schema.text), indent=2, ensure_ascii=False)
    except ValueError:
        return schema.text


# --- check, diff --------------------------------------------------------------------------------------------------


def _configure_check(parser: ArgumentParser) -> None:
    parser.add_argument("subject", metavar="SUBJECT")
    _add_file(parser)
    parser.add_argument("--version", metavar="N", help="compare with this version only (default: as the level asks)")
    add_registry(parser)


def _check(arguments: Namespace) -> None:
    version = None if arguments.version is None else _version(arguments.version)
    messages = _asked(_registry(arguments).incompatibilities(arguments.subject, _schema(arguments), version=version))
    if is_table(arguments):
        if not messages:
            print("compatible")
    else:
        print_value(arguments, {"compatible": not messages, "messages": messages})
    if messages:
        raise Failure("not compatible: " + "; ".join(messages))


def _configure_diff(parser: ArgumentParser) -> None:
    parser.add_argument("subject", metavar="SUBJECT")
    parser.add_argument("--from", dest="before", default="latest", metavar="N", help="first version (default latest)")
    parser.add_argument("--to", dest="after", metavar="N", help="second version")
    parser.add_argument("--schema", metavar="FILE", help=f"file to compare with, instead of --to: {SUFFIXES}")
    parser.add_argument("--type", choices=TYPES, help="kind of the file's schema, if its suffix does not say it")
    add_registry(parser)


def _diff(arguments: Namespace) -> None:
    """Line by line, both texts indented alike."""
    from difflib import unified_diff

    registry = _registry(arguments)
    if (arguments.after is None) == (arguments.schema is None):
        raise Failure("pass --to or --schema")
    before = _asked(registry.version(arguments.subject, _version(arguments.before)))
    if arguments.schema is not None:
        after, name = schema_of_file(arguments.schema, (arguments.type or "").upper() or None), arguments.schema
    else:
        found = _asked(registry.version(arguments.subject, _version(arguments.after)))
        after, name = found.schema, f"{arguments.subject} version {found.version}"
    lines = unified_diff(
        _pretty(before.schema).splitlines(),
        _pretty(after).splitlines(),
        f"{arguments.subject} version {before.version}",
        name,
        lineterm="",
    )
    for line in lines:
        print(line)


# --- delete, compat, mode -----------------------------------------------------------------------------------------


def _configure_delete(parser: ArgumentParser) -> None:
    parser.add_argument("subject", metavar="SUBJECT")
    parser.add_argument("--version", metavar="N", help="delete this version only")
    parser.add_argument("--permanent", action="store_true", help="delete for good what is soft-deleted already")
    add_yes(parser)
    add_registry(parser)


def _delete(arguments: Namespace) -> None:
    what = (
        f"version {arguments.version} of {arguments.subject}" if arguments.version else f"subject {arguments.subject}"
    )
    confirm(f"Delete {what}{' for good' if arguments.permanent else ''}?", arguments)
    registry, permanent = _registry(arguments), arguments.permanent
    if arguments.version is None:
        gone = _asked(registry.delete_subject(arguments.subject, permanent=permanent))
    else:
        gone = [_asked(registry.delete_version(arguments.subject, _version(arguments.version), permanent=permanent))]
    print_rows(arguments, ("SUBJECT", "VERSION"), [(arguments.subject, each) for each in gone], right=("VERSION",))


def _configure_compat(parser: ArgumentParser) -> None:
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="subject (default: the global level)")
    parser.add_argument("--set", dest="level", type=str.upper, choices=LEVELS, metavar="LEVEL", help=", ".join(LEVELS))
    add_registry(parser)


def _compat(arguments: Namespace) -> None:
    registry = _registry(arguments)
    if arguments.level is not None:
        _asked(registry.set_compatibility(arguments.level, arguments.subject))
    level = _asked(registry.compatibility(arguments.subject))
    print_rows(arguments, ("SUBJECT", "COMPATIBILITY"), [(arguments.subject or "(global)", level)])


def _configure_mode(parser: ArgumentParser) -> None:
    parser.add_argument("subject", nargs="?", metavar="SUBJECT", help="subject (default: the global mode)")
    parser.add_argument("--set", dest="mode", type=str.upper, choices=MODES, metavar="MODE", help=", ".join(MODES))
    parser.add_argument("--force", action="store_true", help="set IMPORT although there are schemas")
    add_registry(parser)


def _mode(arguments: Namespace) -> None:
    registry = _registry(arguments)
    if arguments.mode is not None:
        _asked(registry.set_mode(arguments.mode, arguments.subject, force=arguments.force))
    mode = _asked(registry.mode(arguments.subject))
    print_rows(arguments, ("SUBJECT", "MODE"), [(arguments.subject or "(global)", mode)])


VERBS: Final = {
    "create": Verb(
        _configure_create,
        _create,
        "register a schema as the next version of a subject",
        "barnabas schema create orders-value --schema order.avsc",
    ),
    "get": Verb(
        _configure_get, _get, "print a schema, by subject or by id", "barnabas schema get orders-value --version 1"
    ),
    "list": Verb(
        _configure_list,
        _list,
        "list subjects with their latest version, or the versions of subjects",
        "barnabas schema list orders-value",
    ),
    "check": Verb(
        _configure_check,
        _check,
        "check whether a schema is compatible with a subject",
        "barnabas schema check orders-value --schema order.avsc",
    ),
    "diff": Verb(
        _configure_diff,
        _diff,
        "show the difference between two versions, or a version and a file",
        "barnabas schema diff orders-value --schema order.avsc",
    ),
    "delete": Verb(
        _configure_delete,
        _delete,
        "delete a subject or one of its versions",
        "barnabas schema delete orders-value --version 1 --yes",
    ),
    "compat": Verb(
        _configure_compat,
        _compat,
        "show or set the compatibility level of a subject, or the global one",
        "barnabas schema compat orders-value --set FULL",
    ),
    "mode": Verb(
        _configure_mode,
        _mode,
        "show or set the mode of a subject, or the global one",
        "barnabas schema mode orders-value --set READWRITE",
    ),
}
