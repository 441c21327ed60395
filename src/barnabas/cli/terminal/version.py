"""``barnabas version``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from barnabas.model.version import __version__


def configure(parser: ArgumentParser) -> None:
    """No options."""


def run(arguments: Namespace) -> None:
    print(f"barnabas {__version__}")
