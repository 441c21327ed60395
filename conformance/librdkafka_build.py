"""librdkafka with its own tests, built once into our cache from the sources inside an npm package.

The package is the one place in the registries that carries librdkafka with all of its tests. Called by the suite of
the same name; run as a program (`python -m conformance.librdkafka_build`) it builds ahead of time.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tools.cache import cache_directory, locked

from conformance.fetched import npm_source, require_debian, run_quietly

PACKAGE = "@confluentinc/kafka-javascript"
PACKAGE_VERSION = "1.10.1"
DEBIAN_PACKAGES = ("g++", "make", "rapidjson-dev", "zlib1g-dev", "libssl-dev", "libzstd-dev", "libcurl4-openssl-dev")
BUILD = f"{PACKAGE_VERSION}-curl"  # its tests of OIDC need it
BUILD_SECONDS_MAX = 3600


def librdkafka() -> Path:
    """The root of a built librdkafka; its runner is `tests/test-runner`."""
    directory = cache_directory("librdkafka") / BUILD
    complete = directory / ".complete"
    if complete.exists():
        return directory
    require_debian(DEBIAN_PACKAGES)
    source = npm_source(PACKAGE, PACKAGE_VERSION) / "deps" / "librdkafka"
    with locked("librdkafka"):
        if not complete.exists():
            shutil.copytree(source, directory, dirs_exist_ok=True)
            _build(directory)
            complete.touch()
    return directory


def _build(directory: Path) -> None:
    # The archive of npm keeps no permission to execute.
    for script in (directory / "configure", *directory.glob("mklove/**/*"), *directory.glob("*.sh")):
        script.chmod(0o755)
    jobs = f"-j{min(2, os.cpu_count() or 1)}"
    run_quietly(["./configure", "--disable-gssapi"], cwd=directory, seconds_max=BUILD_SECONDS_MAX)
    run_quietly(["make", jobs, "libs"], cwd=directory, seconds_max=BUILD_SECONDS_MAX)
    run_quietly(["make", jobs, "-C", "tests", "build"], cwd=directory, seconds_max=BUILD_SECONDS_MAX)


if __name__ == "__main__":
    print(librdkafka())
