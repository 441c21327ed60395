"""A machine with one log on a disk in memory, which can be killed, lose its power and be started again.

The benches beside these tests are not installed anywhere.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hand_clock import HandClock

from barnabas.model.ids import TopicPartition
from barnabas.storage.log import Appended, PartitionLog
from barnabas.storage.settings import TopicSettings
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.testing.world import InlineWorkers, SeededEntropy
from barnabas.wire.records import Record, decode_all, encode_batch
from barnabas.world.memory import MemoryDisk
from barnabas.world.world import World

sys.path[:0] = [str(Path(__file__).parent)]

NOW_MS = 1_700_000_000_000
DIRECTORY = "/data/orders-0"


class Machine:
    """One log, opened and used as the broker does, and everything that may happen to it."""

    directory = DIRECTORY

    def __init__(self, **settings: Any) -> None:
        self.clock = HandClock(NOW_MS)
        self.disk = MemoryDisk(self.clock)
        self.disk.make_directory("/data")
        self.disk.sync_all()
        self.entropy = SeededEntropy(random.Random(7))
        self.world = World(
            clock=self.clock, disk=self.disk, entropy=self.entropy, workers=InlineWorkers(random.Random(7))
        )
        self.settings = TopicSettings(**settings)
        self.log: PartitionLog

    def open(self, *, was_clean: bool = False, **options: Any) -> PartitionLog:
        opening = PartitionLog.open(
            self.world,
            DIRECTORY,
            TopicPartition("orders", 0),
            self.settings,
            topic_id=options.pop("topic_id", None),
            was_clean=was_clean,
            **options,
        )
        self.log = asyncio.run(opening)
        return self.log

    def reopen(self, *, was_clean: bool = False, **options: Any) -> PartitionLog:
        """The process dies without a word and starts again."""
        self.disk.kill()
        return self.open(was_clean=was_clean, **options)

    def restart(self, **options: Any) -> PartitionLog:
        """A clean shutdown, then a start that trusts it."""
        asyncio.run(self.log.close())
        self.disk.kill()
        return self.open(was_clean=True, **options)

    def crash(self, seed: int) -> None:
        self.disk.crash(SeededEntropy(random.Random(seed)))

    def flush(self) -> None:
        asyncio.run(self.log.flush())

    def batch(self, *values: bytes, timestamp: int = NOW_MS, **options: Any) -> bytearray:
        key = options.pop("key", b"key")
        return encode_batch([(timestamp, key, value, ()) for value in values or (b"value",)], **options)

    def marker(
        self, producer_id: int, *, epoch: int = 0, is_abort: bool, coordinator_epoch: int = 0, timestamp: int = NOW_MS
    ) -> bytearray:
        key, value = pack(">hh", 0, 0 if is_abort else 1), pack(">hi", 0, coordinator_epoch)
        return encode_batch(
            [(timestamp, key, value, ())],
            producer_id=producer_id,
            producer_epoch=epoch,
            is_transactional=True,
            is_control=True,
        )

    def append(self, *values: bytes, leader_epoch: int = 0, transaction_version: int = 0, **options: Any) -> Appended:
        return self.append_batch(
            self.batch(*values, **options), leader_epoch=leader_epoch, transaction_version=transaction_version
        )

    def append_batch(
        self,
        batch: bytearray,
        *,
        leader_epoch: int = 0,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        rules = Rules.of(self.log.settings, origin=origin)
        return self.log.append_as_leader(
            validate(batch, rules, now_ms=self.clock.now_ms),
            leader_epoch=leader_epoch,
            now_ms=self.clock.now_ms,
            transaction_version=transaction_version,
        )

    def end_transaction(self, producer_id: int, *, is_abort: bool, **options: Any) -> Appended:
        version = options.pop("transaction_version", 0)
        return self.append_batch(
            self.marker(producer_id, is_abort=is_abort, **options),
            origin=Origin.COORDINATOR,
            transaction_version=version,
        )

    def raw(self, offset: int, *, size_bytes_max: int = 1 << 30, end: int | None = None, one: bool = True) -> bytes:
        read = self.log.read(
            offset,
            size_bytes_max=size_bytes_max,
            end_offset_max=self.log.end_offset if end is None else end,
            at_least_one=one,
        )
        return read.records.file.read(read.records.position, read.records.size_bytes) if read.records else b""

    def read_all(self, offset: int | None = None) -> list[Record]:
        """Every record from an offset on, as a consumer would get them."""
        offset = self.log.log_start_offset if offset is None else offset
        records: list[Record] = []
        while offset < self.log.end_offset:
            got = [record for record in decode_all(self.raw(offset, size_bytes_max=4096)) if record.offset >= offset]
            if not got:
                break
            records += got
            offset = got[-1].offset + 1
        return records

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.read_all()]

    def names(self, suffix: str = "") -> list[str]:
        return [name for name in self.disk.list(DIRECTORY) if name.endswith(suffix)]

    def content(self, name: str) -> bytes:
        return self.disk.read_all(f"{DIRECTORY}/{name}", size_bytes_max=1 << 30)

    def overwrite(self, name: str, content: bytes) -> None:
        file = self.disk.open(f"{DIRECTORY}/{name}", create=True)
        file.truncate(0)
        file.append(content)


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    machine.open()
    return machine


@pytest.fixture
def small() -> Machine:
    """Segments and index intervals so small that a few records fill them."""
    machine = Machine(segment_bytes=600, index_interval_bytes=100, retention_ms=1000)
    machine.open()
    return machine


@pytest.fixture
def new_machine() -> Callable[..., Machine]:
    return Machine


def fill(machine: Machine, values: Sequence[bytes]) -> None:
    for value in values:
        machine.append(value)
