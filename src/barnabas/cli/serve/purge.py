"""``barnabas purge``: ``down --purge`` under the name that people look for."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from barnabas.cli.serve import down


def configure(parser: ArgumentParser) -> None:
    down.configure(parser)
    parser.set_defaults(purge=True)


def run(arguments: Namespace) -> None:
    down.run(arguments)
