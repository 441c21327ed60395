"""The machine that a run happens on: its facts for the report, and its memory made ready for a fair comparison.

In a virtual machine the first touch of a page is paid to the host, several times the price of writing it. Whoever comes
first would pay for whoever comes second, so every bulk run is preceded by a file that is written and removed. The other
way round, a log can be taken out of the page cache, so that whoever reads it goes to the disk.
"""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import confluent_kafka
from tools.kafka_jars import KAFKA_VERSION, java_command

from barnabas import __version__

_CHUNK_BYTES = 1 << 20
_COMMAND_SECONDS_MAX = 20


def describe() -> str:
    """One line: processor, cores, memory, kernel, Python."""
    processor = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    kilobytes = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return (
        f"{processor}, {os.cpu_count()} cores, {kilobytes / (1 << 20):.0f} GiB, "
        f"Linux {platform.release()}, Python {platform.python_version()}"
    )


@cache
def versions() -> str:
    """One line: what was compared."""
    java = subprocess.run(
        [java_command("-")[0], "-version"], capture_output=True, text=True, timeout=_COMMAND_SECONDS_MAX
    ).stderr.splitlines()[0]
    librdkafka = confluent_kafka.libversion()[0]
    return f"Apache Kafka {KAFKA_VERSION} on {java}, librdkafka {librdkafka}, Barnabas {__version__}"


def touch_page_cache(size_bytes: int) -> None:
    """Makes the kernel own as many free pages as a bulk run will fill."""
    chunk = bytes(_CHUNK_BYTES)
    with tempfile.TemporaryFile() as file:
        for _ in range(size_bytes // _CHUNK_BYTES):
            file.write(chunk)


def settle(directories: Iterable[Path]) -> None:
    """Writes the logs in these directories to the disk, so that no reader waits for what a writer has left to do."""
    for descriptor in _opened_logs(directories):
        os.fdatasync(descriptor)


def evict(directories: Iterable[Path]) -> None:
    """Takes the logs in these directories out of the page cache; what was not yet on the disk is written first."""
    for descriptor in _opened_logs(directories):
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _opened_logs(directories: Iterable[Path]) -> Iterator[int]:
    for directory in directories:
        for path in directory.glob("*.log"):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                yield descriptor
            finally:
                os.close(descriptor)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
