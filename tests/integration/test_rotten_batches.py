"""Bits flip in a log while a broker serves it: nobody gets wrong records for right ones, and nobody else is disturbed.

By default every bit of one header and a slice of the records are tried; ``BARNABAS_BIT_FLIPS=all`` tries every bit.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from memory_disk import disk_of
from talk import Talk, batch, fetch_request

from barnabas.model import errors
from barnabas.model.errors import Malformed
from barnabas.storage.log import PartitionLog
from barnabas.testing import Broker
from barnabas.wire.batch import HEADER_BYTES, crc_matches, iterate
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.records import decode_all
from barnabas.world.memory_file import FileNode

BATCHES = 12
RECORDS = 3  # of each
DAMAGED = 5  # the batch whose header loses bits
START_MS = 1_700_000_000_000
SEGMENT_BYTES = 1 << 20
STRIDE = 1 if os.environ.get("BARNABAS_BIT_FLIPS") == "all" else 149


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def talk(broker: Broker) -> Iterator[Talk]:
    with Talk(broker.bootstrap_servers) as connection:
        yield connection


class Rotting:
    """A topic with a closed segment whose bits are flipped one at a time, beside a topic that is well."""

    def __init__(self, broker: Broker, talk: Talk, name: str) -> None:
        self.name, self.neighbour = name, f"{name}-neighbour"
        chance = Random(7)
        for topic in (self.name, self.neighbour):
            talk.create(topic, segment_bytes=str(SEGMENT_BYTES), index_interval_bytes="0")
        for number in range(BATCHES):
            values = [chance.randbytes(chance.randrange(200)) for _ in range(RECORDS)]
            assert talk.produce(self.name, batch(*values, timestamp=START_MS + 100 * number)).error_code == 0
        assert talk.produce(self.neighbour, batch(b"well")).error_code == 0
        self.log: PartitionLog = broker.node.services.replicas.leader(self.name, 0).log
        broker.run(self._roll())
        path = f"{self.log.directory}/{0:020d}.log"
        node = disk_of(broker)._get(path)
        assert isinstance(node, FileNode)
        self._node = node
        self.original = bytes(node.content)
        self.starts = [position for position, _ in iterate(self.original)]
        assert len(self.starts) == BATCHES
        self.contents = decode_all(self.original)
        self._broker = broker

    async def _roll(self) -> None:
        self.log.roll(START_MS)

    def flip(self, bit: int | None) -> None:
        """Only this bit is wrong, and nothing is remembered of how it was before."""

        async def work() -> None:
            self._node.content[:] = self.original
            if bit is not None:
                self._node.content[bit // 8] ^= 1 << bit % 8
            self.log.reader.forget()

        self._broker.run(work())

    def batch_of(self, bit: int) -> int:
        return max(number for number, start in enumerate(self.starts) if start <= bit // 8)


@pytest.fixture
def rotting(broker: Broker, talk: Talk, name: str) -> Rotting:
    return Rotting(broker, talk, name)


def both(talk: Talk, rotting: Rotting, offset: int) -> tuple[FetchResponse.PartitionData, FetchResponse.PartitionData]:
    """One request for the topic that rots and for its neighbour."""
    request = fetch_request(rotting.name, offset)
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request.topics.append(FetchRequest.FetchTopic(topic=rotting.neighbour, partitions=[asked]))
    rows = {topic.topic: topic.partitions[0] for topic in talk.ask(request, 12).responses}
    return rows[rotting.name], rows[rotting.neighbour]


def verdict(rotting: Rotting, row: FetchResponse.PartitionData, offset: int) -> str:
    """What a client makes of the answer; whatever it takes for records must have been written so."""
    if row.error_code:
        assert row.error_code == errors.CORRUPT_MESSAGE.code
        return "refused by the broker"
    records = bytes(row.records or b"")
    try:
        if not all(crc_matches(records, *whole) for whole in iterate(records)):
            return "fails its checksum"
        found = decode_all(records)
    except Malformed:
        return "no batch"
    # The offset and the epoch of a batch are not under its checksum, nor is its length.
    written = {(record.timestamp, record.value) for record in rotting.contents}
    assert all((record.timestamp, record.value) in written for record in found)
    whole = [record for record in rotting.contents if record.offset >= offset]
    return "right" if found[-len(whole) :] == whole else "other offsets, or fewer"


def bits_to_flip(rotting: Rotting) -> list[int]:
    start = rotting.starts[DAMAGED] * 8
    header = range(start, start + HEADER_BYTES * 8)
    return sorted({*header, *range(0, len(rotting.original) * 8, STRIDE)})


def test_a_flipped_bit_is_the_trouble_of_its_own_partition(talk: Talk, rotting: Rotting) -> None:
    found = Counter[str]()
    for bit in bits_to_flip(rotting):
        rotting.flip(bit)
        damaged = rotting.batch_of(bit)
        for offset in {0, damaged * RECORDS, damaged * RECORDS + 1, min(damaged + 1, BATCHES - 1) * RECORDS}:
            row, neighbour = both(talk, rotting, offset)
            assert [record.value for record in decode_all(neighbour.records or b"")] == [b"well"], f"bit {bit}"
            found[verdict(rotting, row, offset)] += 1
    rotting.flip(None)
    assert verdict(rotting, both(talk, rotting, 0)[0], 0) == "right"
    print(f"{dict(found)}")
    assert found["fails its checksum"] > found["refused by the broker"] > 0


def test_a_time_is_asked_for_where_a_header_has_rotted(talk: Talk, rotting: Rotting) -> None:
    for bit in range(rotting.starts[DAMAGED] * 8, (rotting.starts[DAMAGED] + HEADER_BYTES) * 8):
        rotting.flip(bit)
        row = talk.offset(rotting.name, START_MS + 100 * DAMAGED + 1)
        assert row.error_code in (0, errors.CORRUPT_MESSAGE.code), f"bit {bit}"
        assert talk.offset(rotting.neighbour, START_MS).offset == 0
