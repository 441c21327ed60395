"""The wheel: it installs into an empty environment where there is no C compiler, and starts a broker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from barnabas.world.real import free_ports

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None, reason="building a wheel needs a C compiler"),
]


@pytest.fixture(scope="module")
def dist() -> Path:
    """Build the wheel of this Python and the source archive."""
    from tools import wheel

    wheel.main([f"{sys.version_info.major}.{sys.version_info.minor}"])
    return wheel.DIST


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return max(dist.glob(f"*-{tag}-*manylinux*.whl"), key=lambda path: path.stat().st_mtime)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel where no compiler is found; return the directory of its programs."""
    directory = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    environment = os.environ | {"CC": "/bin/false", "CXX": "/bin/false"}
    command = [str(directory / "bin" / "pip"), "install", "--quiet", "--only-binary", ":all:", str(wheel)]
    subprocess.run(command, check=True, env=environment)
    return directory / "bin"


def run(installed: Path, *words: str, cwd: Path) -> str:
    done = subprocess.run([str(installed / "barnabas"), *words], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_its_licence_and_stripped_modules(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        compiled = [each for each in archive.infolist() if each.filename.endswith(".so")]
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in names}
    assert len(compiled) >= 7
    assert sum(each.file_size for each in compiled) < 4_000_000


def test_the_source_archive_has_tests_and_docs(dist: Path) -> None:
    newest = max(dist.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)
    with tarfile.open(newest) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "NOTICE", "CHANGELOG.md", "docs/TOUR.md", "tests/conftest.py", "src/barnabas/commit.txt"}
    assert wanted <= names


def test_a_broker_of_the_wheel_takes_and_gives_records(installed: Path, tmp_path: Path) -> None:
    version = run(installed, "--version", cwd=tmp_path)
    assert "(commit " in version
    port = str(free_ports("127.0.0.1", 1)[0])
    run(installed, "up", "--detach", "--port", port, cwd=tmp_path)
    try:
        servers = ("-b", f"127.0.0.1:{port}")
        run(installed, "topic", "create", "orders", *servers, cwd=tmp_path)
        run(installed, "produce", "orders", "-k", "k", "-v", "hello", *servers, cwd=tmp_path)
        assert run(installed, "consume", "orders", "--exit", *servers, cwd=tmp_path) == "hello\n"
        code = "from barnabas.wire import record_codec; print(record_codec.__file__)"
        shown = subprocess.run([str(installed / "python"), "-c", code], capture_output=True, text=True, check=True)
        assert shown.stdout.strip().endswith(".so")
    finally:
        run(installed, "down", cwd=tmp_path)
