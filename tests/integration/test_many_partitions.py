"""Many partitions and few file descriptors: they are all there, and the broker stays within its limit."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from talk import Talk, batch

COUNT = int(os.environ.get("BARNABAS_MANY_PARTITIONS", "300"))
FILES_MAX = 256
START_SECONDS_MAX = 300


class Limited:
    """A broker in a process that may have few files open."""

    def __init__(self, data: Path) -> None:
        started = time.monotonic()
        command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data-dir", str(data)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=_limit)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("READY "), line
        self.bootstrap_servers = line.split()[1]
        self.ready_seconds = time.monotonic() - started

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(START_SECONDS_MAX) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_MAX, FILES_MAX))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    if not Path("/proc/self/fd").exists():
        pytest.skip("files are counted as Linux shows them")
    return tmp_path / "data"


@pytest.mark.slow
def test_more_partitions_than_file_descriptors(data: Path) -> None:
    broker = Limited(data)
    with Talk(broker.bootstrap_servers) as talk:
        for start in range(0, COUNT, 100):
            talk.create(f"t{start}", min(100, COUNT - start))
        for turn in range(2):
            for index in range(COUNT):
                row = talk.produce(f"t{index - index % 100}", batch(b"%d" % turn), partition=index % 100)
                assert row.error_code == 0, row
        assert broker.open_files < FILES_MAX
        assert all(
            len(talk.read(f"t{index - index % 100}", partition=index % 100)) == 2 for index in range(0, COUNT, 7)
        )
        assert broker.open_files < FILES_MAX
    broker.stop()
    again = Limited(data)
    print(
        f"{COUNT} partitions: ready in {again.ready_seconds:.1f} s, {again.memory_mib:.0f} MiB, {again.open_files} open"
    )
    with Talk(again.bootstrap_servers) as talk:
        assert all(
            len(talk.read(f"t{index - index % 100}", partition=index % 100)) == 2 for index in range(0, COUNT, 7)
        )
        assert again.open_files < FILES_MAX
    again.stop()
