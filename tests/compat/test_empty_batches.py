"""Batches without records, as compaction leaves them to remember a producer: every client reads on behind them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from crc32c import crc32c

from barnabas.testing import Broker
from barnabas.wire.batch import CHECKED_FROM, CRC_POSITION, HEADER, HEADER_BYTES, LENGTH_OVERHEAD, MAGIC
from barnabas.wire.records import encode_batch
from clients import CLIENTS, AtOffset

pytestmark = pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning")

TOPIC = "gaps"
NOW_MS = 1_700_000_000_000
PRODUCER_ID = 4711


def empty_batch(base_offset: int, count: int) -> bytes:
    """What is left of a producer's last batch when all of its records are gone."""
    header = bytearray(
        HEADER.pack(
            *(base_offset, HEADER_BYTES - LENGTH_OVERHEAD, 0, MAGIC, 0, 0, count - 1),
            *(NOW_MS, NOW_MS, PRODUCER_ID, 0, 0, 0),
        )
    )
    header[CRC_POSITION:CHECKED_FROM] = crc32c(header[CHECKED_FROM:]).to_bytes(4, "big")
    return bytes(header)


def batch(base_offset: int, *values: bytes) -> bytes:
    made = encode_batch([(NOW_MS, None, value, ()) for value in values])
    HEADER.pack_into(made, 0, base_offset, *HEADER.unpack_from(made)[1:])
    return bytes(made)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Offsets 0 and 1 have records, 2 to 4 had some, 5 has one, 6 and 7 had some, 8 has one."""
    with Broker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(20)
        log = broker.node.services.replicas.leader(TOPIC, 0).log
        batches = (batch(0, b"a", b"b"), empty_batch(2, 3), batch(5, b"c"), empty_batch(6, 2), batch(8, b"d"))

        async def write() -> None:
            for each in batches:
                log.append_as_follower(each, leader_epoch_max=None, now_ms=NOW_MS)
            log.advance_high_watermark(log.end_offset)

        broker.run(write())
        assert log.end_offset == 9
        yield broker.bootstrap_servers


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.java] * (name == "java")) for name in CLIENTS])
def test_a_reader_goes_on_behind_batches_without_records(address: str, name: str) -> None:
    for start, expected in ((0, [0, 1, 5, 8]), (2, [5, 8]), (3, [5, 8]), (6, [8])):
        found = CLIENTS[name].consume(address, TOPIC, count=len(expected), start=AtOffset(start))
        assert [record["offset"] for record in found] == expected
