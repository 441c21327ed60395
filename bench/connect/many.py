"""Fifty connectors on one machine, one of which fails and one hangs: memory, processes, CPU, and a take-over.

`python -m bench.connect.many [--connectors N] [--seconds N]` prints the figures; the test of isolation uses the same
connectors.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Final

from conformance.connect.workers import OurWorker

from barnabas.testing import BrokerProcess
from bench.measure import process_tree, sample

COUNT: Final = 50
SECONDS: Final = 60.0
TAKE_OVER_SECONDS_MAX: Final = 180.0
FAILS, HANGS = "fails", "hangs"
PLUGINS: Final = """
import time
from collections.abc import Iterator

from barnabas.connect.plugins import Config, Cursor, Record, source


class Nothing(Config):
    pass


@source("always-fails", every="1 s")
def fails(config: Nothing, cursor: int = 0) -> Iterator[Record | Cursor]:
    raise RuntimeError("this source always fails")
    yield Cursor(1)


@source("always-hangs", every="1 s")
def hangs(config: Nothing, cursor: int = 0) -> Iterator[Record | Cursor]:
    time.sleep(100_000)
    yield Cursor(1)
"""


def write_plugins(directory: Path) -> Path:
    """Write the sources that fail and hang; return their directory."""
    plugins = directory / "plugins"
    plugins.mkdir()
    (plugins / "bad_sources.py").write_text(PLUGINS)
    return plugins


def connectors(count: int) -> dict[str, dict[str, str]]:
    """Return configurations by name: generators of data, one source that fails and one that hangs."""
    plain = {"value.converter": "json", "value.converter.schemas.enable": "false"}
    made = {
        f"many-{number}": {**plain, "connector.class": "datagen", "topic": f"many-{number}", "records.per.second": "5"}
        for number in range(count - 2)
    }
    return {
        **made,
        FAILS: {**plain, "connector.class": "always-fails"},
        HANGS: {**plain, "connector.class": "always-hangs"},
    }


def started(bootstrap: str, directory: Path, plugins: Path) -> OurWorker:
    """Return a worker that runs."""
    settings = {"plugins.directory": str(plugins)}
    return OurWorker(bootstrap, directory, group="many", settings=settings).start()


def leading(workers: list[OurWorker]) -> OurWorker:
    """Return the worker that runs the driver."""
    return max(workers, key=lambda worker: len(process_tree(worker.pid)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fifty connectors on one machine.")
    parser.add_argument("--connectors", type=int, default=COUNT)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-many-") as name, BrokerProcess(Path(name) / "broker") as broker:
        directory = Path(name)
        plugins = write_plugins(directory)
        workers = [started(broker.bootstrap_servers, directory, plugins) for _ in range(2)]
        try:
            _measure(workers, options.connectors, options.seconds)
        finally:
            for worker in workers:
                worker.stop()


def _measure(workers: list[OurWorker], count: int, seconds: float) -> None:
    began = time.monotonic()
    configs = connectors(count)
    for name, config in configs.items():
        workers[0].put(name, config)
    for name in configs:
        if name != FAILS:
            workers[0].reaches(name, "RUNNING")
    print(f"{count} connectors run after {time.monotonic() - began:.1f} s", flush=True)
    leader = leading(workers)
    before = sample(process_tree(leader.pid))
    time.sleep(seconds)
    after = sample(process_tree(leader.pid))
    cpu, wall = after.cpu_seconds - before.cpu_seconds, after.monotonic_seconds - before.monotonic_seconds
    print(f"memory      {after.anonymous_bytes / 2**20:8.0f} MiB")
    print(f"processes   {len(process_tree(leader.pid)):8d}")
    print(
        f"CPU         {cpu / wall:8.2f} cores, {1000 * cpu / wall / count:.1f} ms a second for each connector",
        flush=True,
    )
    other = next(each for each in workers if each is not leader)
    began = time.monotonic()
    leader.kill()
    deadline = began + TAKE_OVER_SECONDS_MAX
    while not (len(process_tree(other.pid)) > 2 and _runs(other)) and time.monotonic() < deadline:
        time.sleep(0.2)
    print(f"take-over   {time.monotonic() - began:8.1f} s after kill -9 of the leader, until connectors run again")
    leader.start()


def _runs(worker: OurWorker) -> bool:
    status = worker.request("GET", "/connectors/many-0/status").json()
    return status["connector"]["state"] == "RUNNING" and status["connector"]["worker_id"].endswith(f":{worker.port}")


if __name__ == "__main__":
    main()
