"""``barnabas config edit``: the settings of a topic, broker or group in $EDITOR, then the difference, then the change.

What is set stands there as ``name=value``; what is not, as a comment with its default. A line that goes, or becomes a
comment, goes back to the default. Nothing is changed before the cluster has said that all of it would work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.cli.terminal.config_file import properties
from barnabas.client.admin.configs import Change, ConfigEntry, ConfigSource, Operation, Resource
from barnabas.ops.failure import Failure

OWN: Final = (ConfigSource.TOPIC, ConfigSource.DYNAMIC_BROKER, ConfigSource.GROUP)
HEAD: Final = """\
# {name}: name=value sets a setting; a line that is deleted, or becomes a comment, goes back to the default.
"""


def own_settings(entries: Mapping[str, ConfigEntry], resource: Resource) -> dict[str, str]:
    """What is set on the resource itself; secrets cannot be shown, so they are not in here."""
    sources = (ConfigSource.DYNAMIC_DEFAULT_BROKER,) if not resource.name else OWN
    return {
        entry.name: entry.value
        for entry in sorted(entries.values())
        if entry.source in sources and entry.value is not None
    }


def text_of(entries: Mapping[str, ConfigEntry], resource: Resource) -> str:
    own = own_settings(entries, resource)
    lines = [HEAD.format(name=f"{resource.kind.name.lower()} {resource.name or 'all'}"), ""]
    lines += [f"{name}={value}" for name, value in own.items()]
    lines += ["", *(_comment(entry) for entry in sorted(entries.values()) if entry.name not in own and _shows(entry))]
    return "\n".join(lines) + "\n"


def _shows(entry: ConfigEntry) -> bool:
    return not entry.is_read_only and not entry.is_sensitive


def _comment(entry: ConfigEntry) -> str:
    return f"# {entry.name}={entry.value or ''}"


def changes_of(before: Mapping[str, str], text: str) -> list[Change]:
    """What the text changes, deletions last."""
    wanted: dict[str, str] = {}
    for name, value in properties(text):
        if name in wanted:
            raise Failure(f"{name} is there twice: nothing was changed")
        wanted[name] = value
    changed = [Change(name, value) for name, value in wanted.items() if before.get(name) != value]
    return changed + [Change(name, None, Operation.DELETE) for name in before if name not in wanted]
