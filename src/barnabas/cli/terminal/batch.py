"""``barnabas batch``: the commands of a file, one a line, in one process: a hundred of them cost no hundred starts.

Lines are written as in a shell, without the leading ``barnabas`` if one likes; # begins a comment. The first command
that fails ends it, unless ``--keep-going`` says otherwise; then the exit code says that one failed.
"""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.ops.failure import Failure

STANDARD_INPUT: Final = "-"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where the commands are; - is standard input")
    parser.add_argument("-k", "--keep-going", action="store_true", help="go on when a command fails")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print each command before it runs")


def run(arguments: Namespace) -> None:
    from barnabas.cli.main import main

    failed = 0
    for number, words in commands(_lines(arguments.file)):
        if not arguments.quiet:
            print(f"$ barnabas {shlex.join(words)}", flush=True)
        try:
            code = main(words)
        except SystemExit as end:  # the parser's way of saying that the line is wrong
            code = end.code if isinstance(end.code, int) else 1
        if code == 0:
            continue
        failed += 1
        if not arguments.keep_going:
            raise Failure(f"line {number} failed; what comes after it was not run")
    if failed:
        raise Failure(f"{failed} commands failed")


def _lines(path: str) -> Iterable[str]:
    if path == STANDARD_INPUT:
        return list(sys.stdin)
    try:
        with open(path) as file:
            return list(file)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def commands(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The words of each command, with the number of its line."""
    for number, line in enumerate(lines, start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise Failure(f"line {number}: {error}") from error
        if words[:1] == ["barnabas"]:
            words = words[1:]
        if words[:1] == ["batch"]:
            raise Failure(f"line {number}: a batch does not run another one")
        if words:
            yield number, words
