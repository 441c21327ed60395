"""Metrics of the process: stalls and idle time of the event loop, failed tasks, disks, open files.

``loop_watch`` measures the loop; disks and open files are read when a scraper asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.broker.requests.services import Services
from barnabas.observe.metrics import COUNTER, SUMMARY, Family, Sample, one
from barnabas.world.disk import Disk, DiskFailure

OPEN_FILES: Final = "/proc/self/fd"
QUANTILES: Final = (0.5, 0.99, 0.999)


def of_process(broker: Services) -> Iterator[Family]:
    """One loop does what Kafka's network and request threads do: they are idle when it is."""
    watch = broker.observed.loop
    idle = round(watch.idle, 4)
    yield one("kafka_network_socketserver_networkprocessoravgidle_percent", "Share of time the loop sleeps.", idle)
    yield one(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", "Share of time the loop sleeps.", idle
    )
    yield one("barnabas_loop_stalls_total", "How often the loop was held up.", watch.stall_count, COUNTER)
    failures = broker.observed.failures.counts
    yield Family(
        "barnabas_task_failures_total",
        "Tasks and callbacks of the event loop that ended with an unexpected exception; the log has the traceback.",
        [
            Sample(sum(failures.values())),
            *(Sample(count, (("task", task),)) for task, count in sorted(failures.items())),
        ],
        COUNTER,
    )
    yield one("barnabas_loop_stall_seconds_max", "The longest it was held up.", watch.longest_ns / 1e9)
    values = watch.lag.quantiles_ms(QUANTILES)
    pairs = [Sample(value / 1000, (("quantile", str(share)),)) for share, value in zip(QUANTILES, values, strict=True)]
    totals = [Sample(watch.lag.count, (), "_count"), Sample(watch.lag.sum_ns / 1e9, (), "_sum")]
    yield Family("barnabas_loop_lag_seconds", "By how much the loop is late.", [*pairs, *totals], SUMMARY)
    yield from _of_disks(broker)
    disk = broker.world.disk
    if disk.is_directory(OPEN_FILES):
        yield one("process_open_fds", "Open files and connections of the process.", len(disk.list(OPEN_FILES)))
    yield one(
        "process_cpu_seconds_total", "Work of the broker's thread.", broker.world.clock.thread_ns() / 1e9, COUNTER
    )


def _of_disks(broker: Services) -> Iterator[Family]:
    directories = [path for path in sorted(broker.store.directory_ids) if path not in broker.store.offline]
    found = [(path, _room(broker.world.disk, path)) for path in directories]
    yield Family(
        "barnabas_disk_free_bytes",
        "What may still be written to the disk of a directory.",
        [Sample(free, (("directory", path),)) for path, (free, _) in found],
    )
    yield Family(
        "barnabas_disk_size_bytes",
        "The size of the disk of a directory.",
        [Sample(size, (("directory", path),)) for path, (_, size) in found],
    )
    used: dict[str, int] = dict.fromkeys(directories, 0)
    for log in broker.store.logs.values():
        place = log.directory.rpartition("/")[0]
        if place in used:
            used[place] += log.size_bytes
    yield Family(
        "barnabas_log_directory_bytes",
        "Bytes of the logs in a directory.",
        [Sample(size, (("directory", path),)) for path, size in used.items()],
    )


def _room(disk: Disk, path: str) -> tuple[int, int]:
    try:
        return disk.free_bytes(path), disk.total_bytes(path)
    except DiskFailure:
        return 0, 0
