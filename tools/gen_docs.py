"""Writes the docs made from the code: COMPATIBILITY.md, SETTINGS.md, the table and the picture of ARCHITECTURE.md.

``python -m tools.gen_docs`` writes them, ``--check`` only says whether they are current.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from barnabas.broker.requests.api import Route
from barnabas.broker.requests.routes import CONTROLLER_ROUTES, ROUTES
from barnabas.broker.settings.broker import BROKER_SETTINGS
from barnabas.broker.settings.profile import DEVELOPMENT, FOR_PEOPLE
from barnabas.model.settings import INT32_MAX, INT64_MAX, Setting, Update
from barnabas.storage.settings import TOPIC_SETTINGS
from tools.architecture_svg import picture
from tools.layers import CLIENT, SERVER, SHARED, TOP

DOCS = Path(__file__).parents[1] / "docs"
SOURCE = Path(__file__).parents[1] / "src" / "barnabas"
PACKAGES_BEGIN = "<!-- packages begin: made by `make docs` from the docstrings of the packages -->\n"
PACKAGES_END = "<!-- packages end -->"
# From below: what servers and clients share, the server, the clients.
ROWS = (*SHARED, *SERVER, *CLIENT, TOP)
PACKAGES = [name for row in ROWS for name in row if (SOURCE / name / "__init__.py").exists()]
EFFECTS = {
    Update.READ_ONLY: "at a restart",
    Update.PER_BROKER: "at once, broker by broker",
    Update.CLUSTER_WIDE: "at once",
}


def compatibility() -> str:
    lines = [
        "# Compatibility",
        "",
        "Every API that a node serves, made from its tables of routes. What is not listed is not announced.",
        "",
        "| key | API | versions | behaviour | differs from Kafka |",
        "|---|---|---|---|---|",
    ]
    lines += _routes(ROUTES)
    lines += [
        "",
        "## Between nodes",
        "",
        "What the listeners named in `controller.listener.names` serve beside those of the above that are forwarded to",
        "the active controller, in envelopes or from tools that are given `--bootstrap-controller`.",
        "",
        "| key | API | versions | behaviour | differs from Kafka |",
        "|---|---|---|---|---|",
    ]
    own = {key: route for key, route in CONTROLLER_ROUTES.items() if not (key in ROUTES and _is_same(key))}
    return "\n".join([*lines, *_routes(own)]) + "\n"


def _is_same(key: int) -> bool:
    return CONTROLLER_ROUTES[key].api is ROUTES[key].api


def _routes(routes: Mapping[int, Route]) -> Iterator[str]:
    for key in sorted(routes):
        route = routes[key]
        versions = f"{route.versions[0]}–{route.versions[-1]}" if len(route.versions) > 1 else str(route.versions[0])
        yield (
            f"| {int(key)} | {route.request.__name__.removesuffix('Request')} | {versions} "
            f"| {route.api.behaviour or _part(route, 'Behaviour')} | {_part(route, 'Differs from Kafka')} |"
        )


def _part(route: Route, title: str) -> str:
    module = sys.modules[route.api.handle.__module__]
    text = inspect.getdoc(module) or ""
    found = re.search(rf"^{title}: (.*?)(?=^(?:Versions|Behaviour|Differs from Kafka): |\Z)", text, re.S | re.M)
    if found is None:
        raise SystemExit(f"{module.__name__} does not say: {title}")
    return " ".join(found[1].split()).replace("``", "`")


def settings() -> str:
    used = [setting for setting in BROKER_SETTINGS if not setting.unused]
    lines = [
        "# Settings",
        "",
        "Names, types and defaults are those of Kafka 4.3; where they are not, and why, is listed in",
        "`tests/unit/broker/test_kafka_settings.py`. Each setting names the test that shows what it does, and",
        "`make check` fails for one that has none.",
        "",
        "A broker reads its settings, each source over the ones before it, from",
        "",
        "1. a file, `--config server.properties` or TOML with the same names; without one, the profile below,",
        "2. the environment: `BARNABAS_SET_LOG_RETENTION_HOURS=1` is `log.retention.hours=1`,",
        "3. the command line: `--set log.retention.hours=1`,",
        "4. the cluster, for those that take effect at once: `barnabas config set broker 1 log.retention.ms=3600000`,",
        "   or `broker all` for every broker.",
        "",
        "`barnabas config get broker 1 --all --doc` shows what is in force, and which source it comes from. Topics get",
        "theirs when they are made (`barnabas topic create -c`) or altered (`barnabas config set topic`). A name that",
        "does not exist is an error that suggests the right one.",
        "",
        "## The development profile",
        "",
        "`barnabas up` without a file changes these defaults and no others, and so does the broker of the test fixture",
        "but for the last:",
        "",
        "| setting | value |",
        "|---|---|",
        *(f"| `{name}` | `{value}` |" for name, value in {**DEVELOPMENT, **FOR_PEOPLE}.items()),
        "",
        "## Broker",
        "",
        *_table(used, "broker"),
        "",
        "## Topic",
        "",
        *_table(TOPIC_SETTINGS, "topic"),
        "",
        "## Without effect",
        "",
        "Files for Kafka name these, so they are known; whoever sets one is told that it does nothing, and why.",
        "",
        "| setting | why |",
        "|---|---|",
        *(
            f"| `{setting.name}` | {setting.doc.removeprefix('No effect here: ')} |"
            for setting in sorted(BROKER_SETTINGS, key=lambda setting: setting.name)
            if setting.unused
        ),
    ]
    return "\n".join(lines) + "\n"


def _table(table: Iterable[Setting], name: str) -> Iterator[str]:
    shown = tomllib.loads((DOCS.parent / "tests" / "settings.toml").read_text())[name]
    yield "| setting | type | default | allowed | takes effect | what it does | shown by |"
    yield "|---|---|---|---|---|---|---|"
    for setting in sorted(table, key=lambda setting: setting.name):
        yield (
            f"| `{setting.name}` | {setting.kind.name.lower()} | {_default(setting)} | {_allowed(setting)} "
            f"| {EFFECTS[setting.update]} | {setting.doc} | {_test(shown.get(setting.name), setting)} |"
        )


def _allowed(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.minimum is None and setting.maximum is None:
        return ""
    low, high = (None if edge is None else f"{edge:.16g}" for edge in (setting.minimum, setting.maximum))
    if high is None:
        return f"{low} and more"
    return f"up to {high}" if low is None else f"{low} to {high}"


def _test(place: str | None, setting: Setting) -> str:
    if place is not None:
        path, _, test = place.partition("::")
        return f"[{test.removeprefix('test_').replace('_', ' ')}](../{path})"
    of_topic = next((topic.name for topic in TOPIC_SETTINGS if setting.name in topic.synonyms), None)
    return "" if of_topic is None else f"`{of_topic}` of the topics"


def _default(setting: Setting) -> str:
    if setting.default is None or setting.default == ():
        return "–"
    named = {INT64_MAX: "unlimited", INT32_MAX: "unlimited"}
    return named.get(setting.default) if setting.default in named else f"`{setting.text(setting.default)}`"  # type: ignore[return-value]


def architecture() -> str:
    """Return the page with its table of packages made from their docstrings."""
    page = (DOCS / "ARCHITECTURE.md").read_text()
    begin, end = page.index(PACKAGES_BEGIN) + len(PACKAGES_BEGIN), page.index(PACKAGES_END)
    lines = ["", "| package | contents | sub-packages |", "|---|---|---|"]
    for name in PACKAGES:
        path = SOURCE / name
        parts = sorted(each.parent.name for each in path.glob("*/__init__.py"))
        lines.append(f"| `{name}` | {_first_paragraph(path)} | {', '.join(f'`{part}`' for part in parts)} |")
    return "\n".join([page[:begin].rstrip(), *lines, "", page[end:]])


def _first_paragraph(package: Path) -> str:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("``", "`")


def main() -> int:
    stale = []
    page = architecture()
    pages = {
        "ARCHITECTURE.md": page,
        "architecture.svg": picture(page),
        "COMPATIBILITY.md": compatibility(),
        "SETTINGS.md": settings(),
    }
    for name, text in pages.items():
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
