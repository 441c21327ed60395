"""A load on a topic, and the judge of those who read it: every record is read, and none again that was committed.

A record may be read twice only if the first reader was gone, or had lost the partition, before the broker took its
commit: whoever reads on begins at what was committed.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import Producer
from group_members import COMMITTED, GIVEN, LEFT, READ, Event, Member

FLUSH_SECONDS_MAX = 20.0
PAUSE_SECONDS = 0.005


class Load:
    """A producer that writes numbers to all partitions in turn until it is told to stop."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 2})
        self._topic, self._partitions = topic, partitions
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.written = 0
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopping.wait(PAUSE_SECONDS):
            self._producer.produce(self._topic, value=b"%d" % self.written, partition=self.written % self._partitions)
            self.written += 1

    def stop(self) -> int:
        """How many records there are, when all are written."""
        self._is_stopping.set()
        self._thread.join(FLUSH_SECONDS_MAX)
        assert self._producer.flush(FLUSH_SECONDS_MAX) == 0
        return self.written


@contextmanager
def load_on(address: str, topic: str, partitions: int) -> Iterator[Load]:
    load = Load(address, topic, partitions)
    try:
        yield load
    finally:
        load.stop()


class Reading(NamedTuple):
    at: float
    value: int
    reader: str
    was_committed: bool


def readings(reader: str, events: Sequence[Event]) -> Iterator[Reading]:
    """What a member read, each with whether it got it committed while it still had the partition."""
    open_rows: dict[int, list[tuple[int, float, int]]] = defaultdict(list)  # by partition: offset, when, value
    has: frozenset[int] = frozenset()

    def close(partition: int, *, below: float, was_committed: bool) -> Iterator[Reading]:
        rows = open_rows[partition]
        open_rows[partition] = [row for row in rows if row[0] >= below]
        for offset, at, value in rows:
            if offset < below:
                yield Reading(at, value, reader, was_committed)

    for event in events:
        if event.kind == READ:
            for partition, offset, value in event.rows:
                open_rows[partition].append((offset, event.at, int(value)))
        elif event.kind == COMMITTED:
            for partition, offset in event.rows:
                yield from close(partition, below=offset, was_committed=True)
        elif event.kind in (GIVEN, LEFT):
            for partition in has - frozenset(event.rows):
                yield from close(partition, below=float("inf"), was_committed=False)
            has = frozenset(event.rows)
    for partition in list(open_rows):
        yield from close(partition, below=float("inf"), was_committed=False)


def read_again(members: Iterable[Member]) -> list[str]:
    """What should not have been read once more, in words."""
    by_value: dict[int, list[Reading]] = defaultdict(list)
    for number, member in enumerate(members):
        for reading in readings(f"{member.name} {number}", list(member.events)):
            by_value[reading.value].append(reading)
    wrong = []
    for value, found in sorted(by_value.items()):
        *earlier, last = sorted(found)
        wrong += [
            f"{value} was read and committed by {each.reader}, and read again by {last.reader}"
            for each in earlier
            if each.was_committed
        ]
    return wrong


def missing(members: Iterable[Member], written: int) -> set[int]:
    return set(range(written)) - {int(value) for member in members for _, _, value in list(member.seen)}
