"""Writes the docs that can be derived from the code: ``docs/COMPATIBILITY.md`` and ``docs/SETTINGS.md``.

``python tools/gen_docs.py`` writes them, ``--check`` only says whether they are current.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.broker.profile import DEVELOPMENT
from barnabas.broker.routes import ROUTES, Route
from barnabas.broker.settings import BROKER_SETTINGS
from barnabas.model.settings import INT32_MAX, INT64_MAX, Setting, SettingTable
from barnabas.storage.settings import TOPIC_SETTINGS

DOCS = Path(__file__).parents[1] / "docs"


def compatibility() -> str:
    lines = [
        "# Compatibility",
        "",
        "Every API that the broker serves, made from its table of routes. What is not listed is not announced.",
        "",
        "| key | API | versions | behaviour | differs from Kafka |",
        "|---|---|---|---|---|",
    ]
    for key in sorted(ROUTES):
        route = ROUTES[key]
        versions = f"{route.versions[0]}–{route.versions[-1]}" if len(route.versions) > 1 else str(route.versions[0])
        lines.append(
            f"| {int(key)} | {route.request.__name__.removesuffix('Request')} | {versions} "
            f"| {_part(route, 'Behaviour')} | {_part(route, 'Differs from Kafka')} |"
        )
    return "\n".join(lines) + "\n"


def _part(route: Route, title: str) -> str:
    text = inspect.getdoc(route.module) or ""
    found = re.search(rf"^{title}: (.*?)(?=^\w[\w ]*: |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise SystemExit(f"{route.module.__name__} does not say: {title}")
    return " ".join(found[1].split()).replace("``", "`")


def settings() -> str:
    lines = [
        "# Settings",
        "",
        "Names, types and defaults are Kafka's. A broker reads them from a `server.properties` or TOML file",
        "(`--config`) and from `--set name=value`; topics get theirs when they are made or altered.",
        "",
        "## The development profile",
        "",
        "`barnabas up` without a file, and the broker of the test fixture, change these defaults and no others:",
        "",
        "| setting | value |",
        "|---|---|",
        *(f"| `{name}` | `{value}` |" for name, value in DEVELOPMENT.items()),
        "",
        "## Broker",
        "",
        *_table(BROKER_SETTINGS),
        "",
        "## Topic",
        "",
        *_table(TOPIC_SETTINGS),
    ]
    return "\n".join(lines) + "\n"


def _table(table: SettingTable) -> Iterator[str]:
    yield "| setting | type | default | takes effect | what it does |"
    yield "|---|---|---|---|---|"
    for setting in sorted(table, key=lambda setting: setting.name):
        yield (
            f"| `{setting.name}` | {setting.kind.name.lower()} | {_default(setting)} "
            f"| {setting.update.value} | {setting.doc} |"
        )


def _default(setting: Setting) -> str:
    if setting.default is None or setting.default == ():
        return "–"
    named = {INT64_MAX: "unlimited", INT32_MAX: "unlimited"}
    return named.get(setting.default) if setting.default in named else f"`{setting.text(setting.default)}`"  # type: ignore[return-value]


def main() -> int:
    stale = []
    for name, text in {"COMPATIBILITY.md": compatibility(), "SETTINGS.md": settings()}.items():
        path = DOCS / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        print(f"stale: {', '.join(stale)}; run `make docs`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
