"""``barnabas version``: the version, and the commit that it was built from."""

from __future__ import annotations

import subprocess
from argparse import ArgumentParser, Namespace
from pathlib import Path

import barnabas
from barnabas.model.version import __version__

PACKAGE = Path(barnabas.__file__).parent
COMMIT_FILE = "commit.txt"  # written by setup.py


def configure(parser: ArgumentParser) -> None:
    """No options."""


def run(arguments: Namespace) -> None:
    """Print the version."""
    commit = _commit()
    print(f"barnabas {__version__}" + (f" (commit {commit})" if commit else ""))


def _commit() -> str:
    """Return the commit of the build or of the checkout; empty if neither is known."""
    file = PACKAGE / COMMIT_FILE
    if file.exists():
        return file.read_text().strip()
    root = PACKAGE.parents[1]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""
