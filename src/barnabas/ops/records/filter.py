"""Which records ``consume`` shows: those whose key, value and headers are as asked for; all conditions must hold.

The expressions of ``--filter`` are ``expression.py``'s; here a record becomes the fields that they speak of.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any, TypeAlias

from barnabas.client.errors import InvalidExpression
from barnabas.client.scan import expression
from barnabas.client.scan.needles import Needle, Probe, part_of
from barnabas.client.scan.patterns import compile_pattern
from barnabas.ops.failure import Failure
from barnabas.ops.records.format import Line

Holds: TypeAlias = Callable[[Line], bool]


def add_filters(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("filters", "Records that do not hold to all of these are left out.")
    group.add_argument("--key", dest="keys", action="append", metavar="TEXT", help="with this key, or one of these")
    group.add_argument("--grep", metavar="REGEX", help="with a key, value or header in which this is found")
    group.add_argument(
        "-H",
        "--header",
        dest="headers",
        action="append",
        default=[],
        metavar="KEY[:VALUE]",
        help="with this header; repeatable",
    )
    group.add_argument("--filter", metavar="EXPRESSION", help=expression.HELP)
    group.add_argument("--tombstones", action="store_true", help="without a value: what deletes a key")


def compile_filter(arguments: Namespace) -> Holds | None:
    """None if everything is to be shown."""
    conditions: list[Holds] = []
    if arguments.keys:
        keys = {key.encode() for key in arguments.keys}
        conditions.append(lambda line: line.key in keys)
    if arguments.tombstones:
        conditions.append(lambda line: line.value is None)
    conditions += [_has_header(text) for text in arguments.headers]
    if arguments.grep is not None:
        conditions.append(_found(arguments.grep))
    if arguments.filter is not None:
        holds = compiled(arguments.filter).holds
        conditions.append(lambda line: holds(_Fields(line)))
    if len(conditions) <= 1:
        return conditions[0] if conditions else None
    return lambda line: all(condition(line) for condition in conditions)


def compiled(text: str) -> expression.Expression:
    try:
        return expression.compile_expression(text)
    except InvalidExpression as error:
        raise Failure(f"--filter {error}") from error


def probe_of(arguments: Namespace) -> Probe | None:
    """What the bytes of a batch must contain for a record to pass the filter; None if that is not known.

    It is about stored bytes: not for keys and values that are decoded before they are filtered.
    """
    needles: set[Needle] = set()
    if arguments.keys and len(arguments.keys) == 1:
        needles |= part_of("key", arguments.keys[0])
    for text in arguments.headers:
        name, _, value = text.partition(":")
        needles |= part_of("headers.", name) | part_of("headers.", value)
    if arguments.filter is not None:
        needles |= compiled(arguments.filter).needles
    return Probe(needles) if needles else None


def _has_header(text: str) -> Holds:
    name, separator, value = text.partition(":")
    wanted = value.encode()
    if separator:
        return lambda line: any(header == (name, wanted) for header in line.headers)
    return lambda line: any(header[0] == name for header in line.headers)


def _found(pattern: str) -> Holds:
    try:
        search = compile_pattern(pattern.encode()).search
    except InvalidExpression as error:
        raise Failure(f"--grep {error}") from error

    def holds(line: Line) -> bool:
        if search(line.key or b"") or search(line.value or b""):
            return True
        return any(search(value or b"") for _, value in line.headers)

    return holds


class _Fields(dict[str, Any]):
    """The fields of a record by name, each made when it is asked for."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def __missing__(self, name: str) -> Any:
        value = self[name] = getattr(self, f"_{name}")
        return value

    @property
    def _topic(self) -> str:
        return self._line.topic

    @property
    def _partition(self) -> int:
        return self._line.partition

    @property
    def _offset(self) -> int:
        return self._line.offset

    @property
    def _timestamp(self) -> int:
        return self._line.timestamp_ms

    @property
    def _key(self) -> str | None:
        return _text(self._line.key)

    @property
    def _value(self) -> str | None:
        return _text(self._line.value)

    @property
    def _headers(self) -> dict[str, str | None]:
        return {name: _text(value) for name, value in self._line.headers}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
