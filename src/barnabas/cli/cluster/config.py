"""``barnabas config``: get, set, edit, delete, diff, export, import: the settings of topics, brokers and groups.

What is set here is kept by the cluster and in force at once, where a setting may change while running. What is in a
broker's own file is shown, but only its owner can change that.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.terminal.connection import attend, pairs
from barnabas.cli.terminal.output import NOBODY, is_table, print_rows, print_table, print_value
from barnabas.cli.terminal.verbs import (
    Outcome,
    Verb,
    add_yes,
    admin_of,
    check_runs,
    complain,
    configure_verbs,
    confirm,
    outcomes_of,
    report,
    run_verb,
)
from barnabas.model.errors import ApiError
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.configs import Change, ConfigEntry, Resource

KINDS: Final = {"topic": "TOPIC", "broker": "BROKER", "group": "GROUP", "logger": "BROKER_LOGGER"}
OF_BROKERS: Final = ("BROKER", "BROKER_LOGGER")
ALL_BROKERS: Final = "all"
LISTENER_PREFIX: Final = "listener.name."  # of settings that hold for one listener
DEFAULTS: Final = ("DEFAULT", "STATIC_BROKER")


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


def _add_resource(parser: ArgumentParser) -> None:
    parser.add_argument(
        "kind", choices=KINDS, metavar="KIND", help="topic, broker, group, or logger for the levels of a broker's log"
    )
    parser.add_argument(
        "name", metavar="NAME", help=f"its name; of a broker and of loggers its id; {ALL_BROKERS}: all brokers"
    )


def _resource(kind: str, name: str) -> Resource:
    from barnabas.client.admin.configs import Resource, ResourceKind

    if kind in ("broker", "logger") and not name.isdecimal() and (kind, name) != ("broker", ALL_BROKERS):
        raise Failure(f"a broker has a number: {name!r} is none; say {ALL_BROKERS} for what holds for every broker")
    return Resource(ResourceKind[KINDS[kind]], "" if kind == "broker" and name == ALL_BROKERS else name)


async def _entries(admin: Admin, resource: Resource, **more: bool) -> dict[str, ConfigEntry]:
    if resource.kind.name in OF_BROKERS and resource.name:
        await check_runs(admin, int(resource.name))
    found = (await admin.describe_configs([resource], **more))[resource]
    if isinstance(found, ApiError):
        raise found
    return found


# --- get --------------------------------------------------------------------------------------------------------------


def _configure_get(parser: ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("keys", nargs="*", metavar="KEY", help="only these settings")
    parser.add_argument("-a", "--all", action="store_true", help="those left at their default too")
    parser.add_argument("--doc", action="store_true", help="what each one does")


def _get(arguments: Namespace) -> None:
    resource = _resource(arguments.kind, arguments.name)

    async def work() -> dict[str, ConfigEntry]:
        async with admin_of(arguments) as admin:
            return await _entries(admin, resource, include_documentation=arguments.doc)

    found = attend(work())
    for key in arguments.keys:
        if key not in found:
            raise Failure(f"there is no setting {key!r}{_near(key, found)}")
    chosen = [
        entry
        for entry in sorted(found.values())
        if (entry.name in arguments.keys if arguments.keys else arguments.all or not entry.is_default)
    ]
    if not is_table(arguments):
        print_value(arguments, [_as_value(entry, arguments.doc) for entry in chosen])
        return
    columns = ("SETTING", "VALUE", "SOURCE", "CHANGES", *(("WHAT IT DOES",) if arguments.doc else ()))
    rows = [
        (
            entry.name,
            _value(entry),
            entry.source.name.lower(),
            "at a restart" if entry.is_read_only else "at once",
            *((entry.documentation or "",) if arguments.doc else ()),
        )
        for entry in chosen
    ]
    print_table(columns, rows, arguments=arguments)


def _value(entry: ConfigEntry) -> str:
    return "(secret)" if entry.is_sensitive else NOBODY if entry.value is None else entry.value


def _as_value(entry: ConfigEntry, with_doc: bool) -> dict[str, Any]:
    value: dict[str, Any] = {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name.lower(),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }
    return {**value, "documentation": entry.documentation} if with_doc else value


def _near(key: str, known: dict[str, ConfigEntry]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


# --- set, delete ------------------------------------------------------------------------------------------------------


def _configure_set(parser: ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("assignments", nargs="+", metavar="KEY=VALUE")
    _add_dry_run(parser)


def _add_dry_run(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it would work")


def _set(arguments: Namespace) -> None:
    from barnabas.client.admin.configs import Change

    _alter(arguments, [Change(key, value) for key, value in pairs(arguments.assignments).items()])


def _configure_delete(parser: ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("keys", nargs="+", metavar="KEY")
    _add_dry_run(parser)
    add_yes(parser)


def _delete(arguments: Namespace) -> None:
    from barnabas.client.admin.configs import Change, Operation

    if not arguments.dry_run:
        what = f"{arguments.kind} {arguments.name}".rstrip()
        confirm(f"Delete {', '.join(arguments.keys)} of {what}, back to the default?", arguments)
    _alter(arguments, [Change(key, None, Operation.DELETE) for key in arguments.keys])


def _alter(arguments: Namespace, changes: list[Change]) -> None:
    """Before and after, as the cluster has it."""
    resource = _resource(arguments.kind, arguments.name)

    async def work() -> tuple[dict[str, ConfigEntry], ApiError | None, dict[str, ConfigEntry]]:
        async with admin_of(arguments) as admin:
            before = await _entries(admin, resource)
            await _check_names(admin, resource, before, changes)
            outcome = (await admin.alter_configs({resource: changes}, validate_only=arguments.dry_run))[resource]
            return before, outcome, await _entries(admin, resource)

    before, error, after = attend(work())
    complain([Outcome(None, error)])
    rows = [(change.name, *(_shown(entries.get(change.name)) for entries in (before, after))) for change in changes]
    print_rows(arguments, ("SETTING", "BEFORE", "AFTER"), rows, names=("name", "before", "after"))
    if arguments.dry_run and is_table(arguments):
        print("\nThis was a dry run: it would work, and nothing has changed.")


async def _check_names(admin: Admin, resource: Resource, known: dict[str, ConfigEntry], changes: list[Change]) -> None:
    """Refuse names that no setting has: brokers keep them, because Kafka's may have plugins that know them."""
    if resource.kind.name != KINDS["broker"]:
        return
    if not resource.name:
        broker = (await admin.describe_cluster()).brokers[0].id
        known = {**known, **await _entries(admin, resource._replace(name=str(broker)))}
    for change in changes:
        if change.value is not None and change.name not in known and not change.name.startswith(LISTENER_PREFIX):
            raise Failure(f"there is no setting {change.name!r}{_near(change.name, known)}")


def _shown(entry: ConfigEntry | None) -> str:
    return NOBODY if entry is None else _value(entry)


# --- edit -------------------------------------------------------------------------------------------------------------


def _configure_edit(parser: ArgumentParser) -> None:
    _add_resource(parser)
    _add_dry_run(parser)
    add_yes(parser)


def _edit(arguments: Namespace) -> None:
    """In $EDITOR; the cluster says whether it would work, the user whether that was meant."""
    from barnabas.cli.cluster.config_edit import changes_of, own_settings, text_of
    from barnabas.cli.terminal.editor import edited

    resource = _resource(arguments.kind, arguments.name)

    async def look() -> dict[str, ConfigEntry]:
        async with admin_of(arguments) as admin:
            return await _entries(admin, resource)

    async def alter(changes: list[Change], *, validate_only: bool) -> ApiError | None:
        async with admin_of(arguments) as admin:
            return (await admin.alter_configs({resource: changes}, validate_only=validate_only))[resource]

    entries = attend(look())
    before = own_settings(entries, resource)
    changes = changes_of(before, edited(text_of(entries, resource), name=f"{arguments.kind}.properties"))
    if not changes:
        print("nothing was changed")
        return
    complain([Outcome(None, attend(alter(changes, validate_only=True)))])
    rows = [(each.name, before.get(each.name, NOBODY), each.value or NOBODY) for each in changes]
    print_rows(arguments, ("SETTING", "BEFORE", "AFTER"), rows, names=("name", "before", "after"))
    if arguments.dry_run:
        return
    confirm("Change it so?", arguments)
    complain([Outcome(None, attend(alter(changes, validate_only=False)))])


# --- diff -------------------------------------------------------------------------------------------------------------


def _configure_diff(parser: ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("other", metavar="OTHER", help="another of the same kind")


def _diff(arguments: Namespace) -> None:
    async def work() -> list[dict[str, ConfigEntry]]:
        async with admin_of(arguments) as admin:
            return [
                await _entries(admin, _resource(arguments.kind, name)) for name in (arguments.name, arguments.other)
            ]

    one, other = attend(work())
    rows = [
        (name, _shown(one.get(name)), _shown(other.get(name)))
        for name in sorted({*one, *other})
        if _shown(one.get(name)) != _shown(other.get(name))
    ]
    columns = ("SETTING", arguments.name, arguments.other)
    print_rows(arguments, columns, rows, names=("name", *columns[1:]))


# --- export, import ---------------------------------------------------------------------------------------------------


def _configure_export(parser: ArgumentParser) -> None:
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="only these (default: all)")


def _export(arguments: Namespace) -> None:
    """Only what topics set themselves: the rest is the brokers' business."""
    from barnabas.client.admin.configs import ConfigSource, Resource, ResourceKind

    async def work() -> dict[str, dict[str, str | None]]:
        async with admin_of(arguments) as admin:
            names = arguments.topics or [
                topic.name for topic in await admin.cluster.all_topics() if not topic.is_internal
            ]
            found: dict[str, dict[str, str | None]] = {}
            for name in names:
                entries = await _entries(admin, Resource(ResourceKind.TOPIC, name))
                own = [entry for entry in sorted(entries.values()) if entry.source is ConfigSource.TOPIC]
                found[name] = {entry.name: entry.value for entry in own}
            return found

    import json

    print(json.dumps({"topics": attend(work())}, indent=2))


def _configure_import(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="as export printed it")
    _add_dry_run(parser)


def _import(arguments: Namespace) -> None:
    from barnabas.client.admin.configs import Change, Operation, Resource, ResourceKind

    wanted = _read_export(arguments.file)

    async def work() -> dict[str, ApiError | None]:
        async with admin_of(arguments) as admin:
            changes: dict[Resource, list[Change]] = {}
            for name, values in wanted.items():
                resource = Resource(ResourceKind.TOPIC, name)
                own = [each for each in (await _entries(admin, resource)).values() if each.source.name == "TOPIC"]
                gone = [Change(each.name, None, Operation.DELETE) for each in own if each.name not in values]
                changes[resource] = [*(Change(key, value) for key, value in values.items()), *gone]
            outcomes = await admin.alter_configs(changes, validate_only=arguments.dry_run)
            return {resource.name: outcome for resource, outcome in outcomes.items()}

    report(arguments, outcomes_of(attend(work()), done="would be set" if arguments.dry_run else "set"))


def _read_export(path: str) -> dict[str, dict[str, str]]:
    import json

    try:
        with open(path) as file:
            topics = json.load(file)["topics"]
        return {name: {key: str(value) for key, value in values.items()} for name, values in topics.items()}
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{path} is not what `barnabas config export` prints: {error}") from error


VERBS: Final = {
    "get": Verb(_configure_get, _get, "show the settings of a topic, a broker or a group, and where they come from"),
    "set": Verb(_configure_set, _set, "change settings; what is not named stays as it is"),
    "edit": Verb(_configure_edit, _edit, "open what is set in $EDITOR, show the difference and change it"),
    "delete": Verb(_configure_delete, _delete, "let settings go back to their default"),
    "diff": Verb(_configure_diff, _diff, "show in which settings two of a kind differ"),
    "export": Verb(_configure_export, _export, "print what topics set themselves, as JSON"),
    "import": Verb(_configure_import, _import, "give topics exactly the settings of a file"),
}
