"""What the suites need from the registries: Debian packages, npm packages and sources from PyPI, kept in our cache.

Everything is fetched on first use, under a lock, and found again later; nothing of it enters the repository. A machine
that cannot have it gets a sentence that says what to install. Called by the suites.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.cache import cache_directory, locked

INSTALL_SECONDS_MAX = 600
FETCH_SECONDS_MAX = 1800  # a compiler of the lowest priority beside other work


class CannotFetch(Exception):
    """Something that a suite stands on is not here and could not be brought here; the message says what to do."""


def run_quietly(command: Sequence[str], *, cwd: Path | None = None, seconds_max: float = FETCH_SECONDS_MAX) -> str:
    """Runs a command of ours to its end, at the lowest priority; its output counts only when it fails."""
    polite = ["nice", "-n", "19", *command]
    try:
        done = subprocess.run(polite, cwd=cwd, capture_output=True, text=True, errors="replace", timeout=seconds_max)
    except subprocess.TimeoutExpired as error:
        raise CannotFetch(f"`{' '.join(command)}` did not end within {seconds_max:.0f} s") from error
    if done.returncode != 0:
        raise CannotFetch(f"`{' '.join(command)}` ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def require_program(name: str, purpose: str) -> str:
    """The full path of a program, or a sentence that says what it is for."""
    path = shutil.which(name)
    if path is None:
        raise CannotFetch(f"`{name}` is not installed: {purpose}")
    return path


def require_debian(packages: Sequence[str]) -> None:
    """Installs what is missing of these packages, where we may."""
    missing = [package for package in packages if not _is_installed(package)]
    if not missing:
        return
    if os.geteuid() != 0:
        raise CannotFetch(f"missing packages: run `sudo apt-get install {' '.join(missing)}`, then try again")
    with locked("apt"):
        run_quietly([require_program("apt-get", "it installs packages"), "update"], seconds_max=INSTALL_SECONDS_MAX)
        run_quietly(["apt-get", "install", "--yes", *missing], seconds_max=INSTALL_SECONDS_MAX)


def _is_installed(package: str) -> bool:
    if shutil.which("dpkg-query") is None:
        raise CannotFetch(f"this is not a Debian: install what gives `{package}` and a `dpkg-query` that knows of it")
    status = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True)
    return status.returncode == 0 and "install ok installed" in status.stdout


def npm_source(package: str, version: str) -> Path:
    """The unpacked archive of an npm package, as published; nothing of it is run."""
    directory = cache_directory("npm", package.replace("/", "+").lstrip("@"), version)
    with locked("npm-source"):
        if not (directory / "package").exists():
            npm = require_program("npm", "it fetches packages of Node")
            run_quietly([npm, "pack", "--silent", f"{package}@{version}"], cwd=directory)
            _unpack(next(directory.glob("*.tgz")), directory)
    return directory / "package"


def npm_installed(packages: Sequence[str]) -> Path:
    """A directory whose `node_modules` hold these packages, `name@version` each."""
    directory = cache_directory("npm", "installed", "-".join(sorted(packages)).replace("/", "+").replace("@", "_"))
    with locked("npm-installed"):
        if not (directory / ".complete").exists():
            (directory / "package.json").write_text('{"private": true, "type": "module"}\n')
            npm = require_program("npm", "it installs packages of Node")
            run_quietly([npm, "install", "--silent", "--no-audit", "--no-fund", *packages], cwd=directory)
            (directory / ".complete").touch()
    return directory


def pypi_source(package: str, version: str) -> Path:
    """The unpacked source distribution of a package of PyPI."""
    directory = cache_directory("pypi", package, version)
    with locked("pypi-source"):
        if not (directory / ".complete").exists():
            # pip asks the package for its name on the way; what builds it may be newer than what is installed here.
            words = ["download", "--quiet", "--no-deps", "--no-binary", package]
            run_quietly([sys.executable, "-m", "pip", *words, "--dest", str(directory), f"{package}=={version}"])
            _unpack(next(directory.glob("*.tar.gz")), directory)
            (directory / ".complete").touch()
    return next(path for path in directory.iterdir() if path.is_dir())


def _unpack(archive: Path, directory: Path) -> None:
    run_quietly(["tar", "--extract", "--file", str(archive), "--directory", str(directory)])
    archive.unlink()
