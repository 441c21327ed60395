"""The machine that a run happens on: its facts for the report, and its memory made ready for a fair comparison.

In a virtual machine the first touch of a page is paid to the host, several times the price of writing it. Whoever comes
first would pay for whoever comes second, so every bulk run is preceded by a file that is written and removed.
"""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path

_CHUNK_BYTES = 1 << 20


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


def touch_page_cache(size_bytes: int) -> None:
    """Makes the kernel own as many free pages as a bulk run will fill."""
    chunk = bytes(_CHUNK_BYTES)
    with tempfile.TemporaryFile() as file:
        for _ in range(size_bytes // _CHUNK_BYTES):
            file.write(chunk)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []
