"""``barnabas streams get``: read a named store of an application from its changelog."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.pipelines.app_files import apps_of
from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import is_table, print_rows, print_value
from barnabas.cli.terminal.verbs import admin_of, now_ms
from barnabas.ops.failure import Failure
from barnabas.ops.records import moments

if TYPE_CHECKING:
    from barnabas.client.cluster.cluster import Cluster
    from barnabas.streams.queries.reader import StoreReader


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("application", metavar="APP", help="id of the application, or its Python file, whose serdes are then used")
    add("store", metavar="STORE", help="name of the store")
    add("key", nargs="?", metavar="KEY", help="key; without it all rows, or those of --from and --to")
    add("--from", dest="first", metavar="KEY", help="first key of a range")
    add("--to", dest="last", metavar="KEY", help="last key of a range, which is included")
    add("--limit", type=int, metavar="N", help="largest number of rows of a range")
    add("--since", metavar="TIME", help="windows that start at a time or later, versions that were valid then or later")
    add("--until", metavar="TIME", help="windows that start at a time or before it, versions likewise")
    add("--at", metavar="TIME", help="version of a key as of a time, in a versioned store")
    add("--versions", action="store_true", help="all versions of a key, in a versioned store")
    add("--partition", type=int, metavar="N", help="partition of the key, if it is not that of the default partitioner")


def run(arguments: Namespace) -> None:
    attend(_get(arguments))


async def _get(arguments: Namespace) -> None:
    from barnabas.streams.catalog.formats import key_from_text
    from barnabas.streams.positions import as_text

    async with admin_of(arguments) as admin:
        reader = await _reader(admin.cluster, arguments)
        key, first, last = (
            None if text is None else key_from_text(reader.entry.key, text)
            for text in (arguments.key, arguments.first, arguments.last)
        )
        if key is not None and reader.entry.kind not in ("window", "session") and not arguments.versions:
            answer = await reader.get(key, at=_time(arguments.at), partition=arguments.partition)
            print(f"position: {as_text(answer.position)}", file=sys.stderr)
            if answer.value is None:
                raise Failure(f"store {arguments.store} has no row with key {arguments.key}")
            _print_value(arguments, answer.value)
            return
        rows, positions, columns = await _rows(reader, arguments, key, first, last)
    for partition, position in positions.items():
        print(f"position of partition {partition}: {as_text(position)}", file=sys.stderr)
    print_rows(arguments, columns, rows)


async def _reader(cluster: Cluster, arguments: Namespace) -> StoreReader:
    """The reader of the store, by the catalog of the cluster or by the code of the application."""
    from barnabas.streams.queries.view import reader_of, stored_reader

    name: str = arguments.application
    if not name.endswith(".py"):
        return await stored_reader(cluster, name, arguments.store)
    topologies = [app.topology() for app in apps_of(Path(name))]
    chosen = next((each for each in topologies if arguments.store in each.stores), topologies[0])
    return reader_of(cluster, chosen, arguments.store)


async def _rows(
    reader: StoreReader, arguments: Namespace, key: Any, first: Any, last: Any
) -> tuple[list[tuple[Any, ...]], Any, tuple[str, ...]]:
    """Rows of a key or a range, the positions they are true for, and the names of their columns."""
    from barnabas.streams.catalog.formats import json_value

    shown = _text if is_table(arguments) else json_value
    since, until = _time(arguments.since), _time(arguments.until)
    if key is not None and arguments.versions:
        versions = await reader.versions(key, since, until, partition=arguments.partition)
        cells = [
            (each.valid_from, "-" if each.valid_to is None else each.valid_to, shown(each.value)) for each in versions
        ]
        return cells, versions.positions, ("VALID FROM", "VALID TO", "VALUE")
    if key is not None:
        found = await reader.fetch(key, since, until, partition=arguments.partition)
    else:
        found = await reader.range(first, last, limit=arguments.limit, start=since, end=until)
    if reader.entry.kind in ("window", "session"):
        windows = [(shown(row.key.key), row.key.start, row.key.end, shown(row.value)) for row in found]
        return windows, found.positions, ("KEY", "START", "END", "VALUE")
    rows = [(shown(row.key), shown(row.value), row.timestamp) for row in found]
    return rows, found.positions, ("KEY", "VALUE", "TIMESTAMP")


def _time(text: str | None) -> int | None:
    """A time in milliseconds: a number, or what ``consume -o @...`` takes."""
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    start = moments.parse_window(f"@{text}", now_ms=now_ms()).start
    return start.value


def _print_value(arguments: Namespace, value: Any) -> None:
    from barnabas.streams.catalog.formats import json_value

    print(_text(value)) if is_table(arguments) else print_value(arguments, json_value(value))


def _text(value: Any) -> str:
    import json

    from barnabas.streams.catalog.formats import json_value

    shown = json_value(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
