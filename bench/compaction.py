"""A compacted topic under load, and its cleaner beside Kafka's: `python -m bench.compaction run|speed`.

`run` writes records over a set of keys, with deletes and transactions, some of them aborted, while the cleaner works
and a consumer reads; afterwards another client checks every key. `speed` writes the same records to both brokers with
their cleaners off, starts each again with its cleaner on, and waits until the log is clean, as librdkafka sees it.
"""

from __future__ import annotations

import argparse
import threading
import time
import urllib.request
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.machine import describe
from bench.measure import sample
from bench.peers import PEERS
from bench.peers.peer import Peer
from bench.probe import free_port

TOPIC = "keyed"
MIB = 1024 * 1024
SECONDS_MAX = 60.0
RECORDS_PER_TRANSACTION = 5000
ABORTED, TRANSACTIONAL = 0.1, 0.5  # of the transactions; of all records
DELETED = 0.05
NOT_SEEN = -1
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.3",
    "delete.retention.ms": "1000",
    "segment.ms": "5000",
}


HORIZON_SECONDS = 6.0  # more than delete.retention.ms and segment.ms


class NotAsExpected(Exception):
    """The check found something that compaction must not do."""


def value_of(number: int) -> bytes:
    """What record `number` holds: its number, and as much as an ordinary record does."""
    return b"%012d" % number + b"." * 88


class Writer:
    """Writes records 0, 1, 2 … and knows what must be left of them."""

    def __init__(self, bootstrap: str, *, keys: int, seed: int) -> None:
        self._chance = Random(seed)
        self._keys = keys
        common = {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
        self._plain = Producer({**common, "enable.idempotence": True, "log_level": 0})
        self._transactional = Producer({**common, "transactional.id": "compaction", "log_level": 0})
        self._transactional.init_transactions(SECONDS_MAX)
        self.last: dict[bytes, int | None] = {}  # key -> number of its last record, None: deleted
        self.written = 0

    def write(self, count: int) -> None:
        end = self.written + count
        while self.written < end:
            portion = min(RECORDS_PER_TRANSACTION, end - self.written)
            if self._chance.random() < TRANSACTIONAL:
                self._write_transaction(portion)
            else:
                self.last.update(self._send(self._plain, portion))
                if self._plain.flush(SECONDS_MAX):
                    raise NotAsExpected("the broker does not take what is sent")

    def _write_transaction(self, portion: int) -> None:
        producer = self._transactional
        producer.begin_transaction()
        changed = self._send(producer, portion)
        if self._chance.random() < ABORTED:
            producer.flush(SECONDS_MAX)
            producer.abort_transaction(SECONDS_MAX)
        else:
            producer.commit_transaction(SECONDS_MAX)
            self.last.update(changed)

    def _send(self, producer: Producer, count: int) -> dict[bytes, int | None]:
        changed: dict[bytes, int | None] = {}
        chance, keys = self._chance.random, self._keys
        for number in range(self.written, self.written + count):
            key = b"key-%d" % (chance() * keys)
            is_deleted = chance() < DELETED
            changed[key] = None if is_deleted else number
            while True:
                try:
                    producer.produce(TOPIC, None if is_deleted else value_of(number), key, partition=0)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1000 == 0:
                producer.poll(0)
        self.written += count
        return changed


class Reader(threading.Thread):
    """Reads along while the log is written and compacted, and remembers at which offset each record is."""

    def __init__(self, bootstrap: str, records: int) -> None:
        super().__init__(daemon=True)
        self._servers = bootstrap
        self.offsets = array("q", [NOT_SEEN]) * records
        self.count = 0
        self.failure: str | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        consumer = reader_of(self._servers, "read_uncommitted")
        last = -1
        while not self._ended.is_set():
            for message in consumer.consume(5000, timeout=0.5):
                if message.error() is not None:
                    continue
                if message.offset() <= last:
                    self.failure = f"offset {message.offset()} came after {last}"
                last = message.offset()
                self.count += 1
                value = message.value()
                if value is not None:
                    self.offsets[int(value[:12])] = last
        consumer.close()

    def stop(self) -> None:
        self._ended.set()
        self.join()


def reader_of(bootstrap: str, isolation: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "compaction",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "fetch.max.bytes": 16 * MIB,
            "queued.max.messages.kbytes": 16 * 1024,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    return consumer


def check(bootstrap: str, writer: Writer, offsets: array[int], *, gone_below: int) -> tuple[int, int]:
    """Read what is left as any consumer would: how many records that are, and how many of them are tombstones.

    None of these may lie below ``gone_below``: they have had their time.
    """
    consumer = reader_of(bootstrap, "read_committed")
    found: dict[bytes, int | None] = {}
    count = tombstones = 0
    last_offset = last_number = -1
    while True:
        messages = consumer.consume(5000, timeout=SECONDS_MAX)
        if not messages:
            raise NotAsExpected("the end of the log was not reached")
        for message in messages:
            if message.error() is not None:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    consumer.close()
                    wanted = {key: number for key, number in writer.last.items() if number is not None}
                    there = {key: number for key, number in found.items() if number is not None}
                    if there != wanted:
                        raise NotAsExpected(f"{len(wanted.items() ^ there.items())} keys have another last value")
                    return count, tombstones
                raise NotAsExpected(str(message.error()))
            offset, value = message.offset(), message.value()
            if offset <= last_offset:
                raise NotAsExpected(f"offset {offset} came after {last_offset}")
            last_offset = offset
            count += 1
            if value is None:
                if offset < gone_below:
                    raise NotAsExpected(f"the tombstone at {offset} is past its horizon and still there")
                tombstones += 1
                found[message.key()] = None
                continue
            number = int(value[:12])
            if number <= last_number or value != value_of(number):
                raise NotAsExpected(f"offset {offset} holds {value[:20]!r} after record {last_number}")
            if offsets and offsets[number] not in (NOT_SEEN, offset):
                raise NotAsExpected(f"record {number} was at {offsets[number]} and is at {offset}")
            last_number = number
            found[message.key()] = number


def end_offset(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "compaction", "log_level": 0})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=SECONDS_MAX)
        return int(end)
    finally:
        consumer.close()


def create_topic(bootstrap: str, **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topic = NewTopic(TOPIC, num_partitions=1, replication_factor=1, config={**TOPIC_SETTINGS, **settings})
    admin.create_topics([topic])[TOPIC].result(SECONDS_MAX)


def log_bytes(peer: Peer) -> int:
    sizes = [path.stat().st_size for path in (peer.data_dir / f"{TOPIC}-0").glob("*.log") if path.exists()]
    return sum(sizes)


def cleaned_offset(peer: Peer) -> int:
    """How far the cleaner has come, by its own checkpoint."""
    path = peer.data_dir / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return max((int(line.split()[2]) for line in lines[2:] if line.startswith(f"{TOPIC} ")), default=0)


def wait_until(condition: Callable[[], bool], seconds: float, *, step: float = 0.05) -> float:
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds:
            raise NotAsExpected(f"it did not come to pass within {seconds:.0f} s")
        time.sleep(step)
    return time.monotonic() - started


def run(*, records: int, keys: int, seed: int = 1) -> None:
    """The whole story on Barnabas; prints what it found."""
    port = free_port()
    settings = {"log.cleaner.backoff.ms": "200", "log.segment.bytes": str(64 * MIB), "barnabas.http.port": str(port)}
    with PEERS["barnabas"](settings) as peer:
        create_topic(peer.bootstrap)
        writer, reader = Writer(peer.bootstrap, keys=keys, seed=seed), Reader(peer.bootstrap, records + 2 * keys)
        reader.start()
        started = time.monotonic()
        peak_bytes = 0
        for _ in range(20):
            writer.write(records // 20)
            peak_bytes = max(peak_bytes, sample(peer.pids).anonymous_bytes)
        seconds = time.monotonic() - started
        written_bytes = log_bytes(peer)
        # What has been cleaned by now has its horizon. When that is past, the next round takes the tombstones away: one
        # that gets to what is written from then on. Segments end by their age.
        cleaned = cleaned_offset(peer)
        time.sleep(HORIZON_SECONDS)
        end = end_offset(peer.bootstrap)
        for _ in range(3):
            writer.write(keys // 2)
            time.sleep(HORIZON_SECONDS)
        wait_until(lambda: cleaned_offset(peer) > end, 120)
        reader.stop()
        if reader.failure is not None:
            raise NotAsExpected(reader.failure)
        left, tombstones = check(peer.bootstrap, writer, reader.offsets, gone_below=cleaned)
        peak_bytes = max(peak_bytes, sample(peer.pids).anonymous_bytes)
        print(f"{writer.written} records over {keys} keys written in {seconds:.1f} s ({records / seconds:,.0f}/s)")
        print(f"read along: {reader.count} records; while it was written the log had {written_bytes / MIB:.0f} MiB")
        print(f"below offset {cleaned} no tombstone is left, past its horizon as all there are")
        print(f"left: {left} records, {tombstones} of them tombstones, in {log_bytes(peer) / MIB:.0f} MiB")
        print(f"keys with a value: {sum(number is not None for number in writer.last.values())}; all as written")
        print(f"memory of the broker at most: {peak_bytes / MIB:.0f} MiB")
        for line in _page(port):
            if line.startswith(("barnabas_loop", "barnabas_cleaner")) and "{topic" not in line:
                print(line)


def _page(port: int) -> list[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SECONDS_MAX) as page:
        return str(page.read().decode()).splitlines()


def speed(*, records: int, keys: int, peers: list[str], seed: int = 2) -> dict[str, float]:
    """The same records on each broker in turn, then only the cleaner: MB of log that it gets through in a second."""
    rates: dict[str, float] = {}
    for name in peers:
        base = {"log.segment.bytes": str(64 * MIB), "log.cleaner.backoff.ms": "100"}
        peer = PEERS[name]({**base, "log.cleaner.enable": "false"})
        try:
            peer.start()
            create_topic(peer.bootstrap, **{"segment.ms": "604800000", "delete.retention.ms": "86400000"})
            writer = Writer(peer.bootstrap, keys=keys, seed=seed)
            writer.write(records)
            peer.stop()
            segments = sorted((peer.data_dir / f"{TOPIC}-0").glob("*.log"))
            bound = int(segments[-1].stem)
            dirty_bytes = sum(path.stat().st_size for path in segments[:-1])
            _switch_on(peer, {**base, "log.cleaner.enable": "true"})
            peer.start()
            before = sample(peer.pids).cpu_seconds
            seconds = wait_until(partial(_is_clean, peer, bound), 600, step=0.01)
            cpu_seconds = sample(peer.pids).cpu_seconds - before
            left, _ = check(peer.bootstrap, writer, array("q"), gone_below=0)
            rates[name] = dirty_bytes / 1e6 / seconds
            print(
                f"{name:10} {dirty_bytes / 1e6:.0f} MB in {seconds:.2f} s after its start: {rates[name]:.0f} MB/s, "
                f"{cpu_seconds:.2f} s of CPU; {left} records are left, all as written",
                flush=True,
            )
        finally:
            peer.stop()
            peer.remove()
    return rates


def _is_clean(peer: Peer, bound: int) -> bool:
    return cleaned_offset(peer) >= bound


def _switch_on(peer: Peer, settings: dict[str, str]) -> None:
    peer.settings = settings
    properties = peer.directory / "server.properties"
    if properties.exists():
        properties.write_text(properties.read_text().replace("cleaner.enable=false", "cleaner.enable=true"))
    if peer.name == "barnabas":
        Path(peer.log_path).unlink()  # its READY line is looked for anew


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.compaction", description=__doc__)
    parser.add_argument("what", choices=["run", "speed"])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--peers", default="kafka,barnabas")
    options = parser.parse_args()
    print(describe(), flush=True)
    if options.what == "run":
        run(records=options.records, keys=options.keys)
        return
    rates = speed(records=options.records, keys=options.keys, peers=options.peers.split(","))
    if {"kafka", "barnabas"} <= set(rates):
        print(f"barnabas cleans at {rates['barnabas'] / rates['kafka']:.2f} of the speed of kafka")


if __name__ == "__main__":
    main()
