"""Many partitions: `python -m bench.partitions cluster|one` prints what they cost a cluster and a single broker.

`cluster` makes partitions with three replicas on three brokers, stops and kills one that is not the active controller,
and measures until it is back in every ISR, with the processor time that each of the three took. `one` fills a single
broker and starts it again, after a stop and after a kill, with its memory and open files. Seen through librdkafka.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from barnabas.client.blocking.admin import Admin
from barnabas.client.settings.client import Settings
from barnabas.testing.cluster import Cluster
from bench.machine import describe
from bench.measure import Sample, sample

TOPIC_PARTITIONS = 100
SECONDS_MAX = 300.0
LOOK_SECONDS = 0.1
MIB = 1024 * 1024
REPLICAS = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.partitions", description=__doc__)
    parser.add_argument("what", choices=["cluster", "one"])
    parser.add_argument("--partitions", type=int, help="1000 in a cluster and 10000 on one broker, if not said")
    parser.add_argument("--directory", help="where the brokers keep their files; it is left as it is then")
    options = parser.parse_args()
    print(describe(), flush=True)
    run, count = (_cluster, 1000) if options.what == "cluster" else (_one, 10_000)
    with tempfile.TemporaryDirectory(prefix="barnabas-partitions-") as scratch:
        run(Path(options.directory or scratch), options.partitions or count)
    return 0


# --- a cluster --------------------------------------------------------------------------------------------------------


def _cluster(directory: Path, count: int) -> None:
    with Cluster(directory) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        before = _costs(cluster)
        seconds = _timed(lambda: _make(admin, count, replicas=REPLICAS))
        print(f"{count} partitions with {REPLICAS} replicas are made in {seconds:.1f} s; {_spent(before, cluster)}")
        _until(lambda: _is_whole(admin, count))
        time.sleep(2)
        controller = _controller(cluster)
        (number, *_) = [each for each in cluster.nodes if each != controller]
        print(f"broker {controller} is the active controller; broker {number} restarts", flush=True)
        for how, end in (("stopped", cluster.stop), ("killed", cluster.kill)):
            _restart(cluster, admin, number, count, how=how, end=end)


def _restart(
    cluster: Cluster, admin: AdminClient, number: int, count: int, *, how: str, end: Callable[[int], None]
) -> None:
    before = _costs(cluster)
    stopping = _timed(lambda: end(number))
    away = _timed(lambda: _until(lambda: _is_out(admin, number)))
    before.pop(number)
    started = time.monotonic()
    ready = _timed(lambda: cluster.start(number))
    _until(lambda: _is_whole(admin, count))
    back = time.monotonic() - started
    print(
        f"{how} in {stopping:.2f} s, out of every ISR {away:.2f} s later; started: ready in {ready:.2f} s, back in "
        f"every ISR after {back:.2f} s; {_spent(before, cluster)}",
        flush=True,
    )
    time.sleep(2)


def _controller(cluster: Cluster) -> int:
    with Admin(Settings(bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))) as admin:
        return int(admin.describe_quorum().leader_id)


def _costs(cluster: Cluster) -> dict[int, Sample]:
    return {number: sample([node.process.pid]) for number, node in cluster.nodes.items() if node.process is not None}


def _spent(before: Mapping[int, Sample], cluster: Cluster) -> str:
    after = _costs(cluster)
    spent = {
        number: now.cpu_seconds - (before[number].cpu_seconds if number in before else 0)
        for number, now in after.items()
    }
    return "CPU " + ", ".join(f"broker {number} {seconds:.2f} s" for number, seconds in spent.items())


# --- one broker -------------------------------------------------------------------------------------------------------


def _one(directory: Path, count: int) -> None:
    with Cluster(directory, brokers=1) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        print(f"empty: {_held(cluster)}")
        seconds = _timed(lambda: _make(admin, count, replicas=1))
        print(f"{count} partitions are made in {seconds:.1f} s; {_held(cluster)}", flush=True)
        for how, end in (("stopped", cluster.stop), ("killed", cluster.kill)):
            stopping = _timed(lambda end=end: end(1))  # type: ignore[misc]
            ready = _timed(lambda: cluster.start(1))
            _until(lambda: _is_whole(admin, count))
            print(f"{how} in {stopping:.2f} s; started: ready in {ready:.2f} s; {_held(cluster)}", flush=True)


def _held(cluster: Cluster) -> str:
    process = cluster.nodes[1].process
    assert process is not None
    now = sample([process.pid])
    files = len(os.listdir(f"/proc/{process.pid}/fd"))
    return f"CPU {now.cpu_seconds:.2f} s, {now.anonymous_bytes / MIB:.0f} MiB of memory, {files} open files"


# --- both -------------------------------------------------------------------------------------------------------------


def _make(admin: AdminClient, count: int, *, replicas: int) -> None:
    for start in range(0, count, TOPIC_PARTITIONS):
        topic = NewTopic(f"many-{start:05}", min(TOPIC_PARTITIONS, count - start), replicas)
        for future in admin.create_topics([topic], request_timeout=SECONDS_MAX).values():
            future.result()


def _isrs(admin: AdminClient) -> list[list[int]]:
    topics = admin.list_topics(timeout=SECONDS_MAX).topics.values()
    return [part.isrs for topic in topics if str(topic.topic).startswith("many-") for part in topic.partitions.values()]


def _is_whole(admin: AdminClient, count: int) -> bool:
    found = _isrs(admin)
    replicas = max(map(len, found), default=0)
    return len(found) == count and all(len(isr) == replicas for isr in found) and replicas in (1, REPLICAS)


def _is_out(admin: AdminClient, number: int) -> bool:
    return all(number not in isr for isr in _isrs(admin))


def _timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it is not so after {SECONDS_MAX:.0f} s")
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
