"""Every client writes, every client reads what every other one wrote: all codecs, all shapes of records.

The tests know nothing of Barnabas but an address; run with `BARNABAS_TEST_BOOTSTRAP` they judge any broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from _pytest.mark import ParameterSet
from records import SentRecord, contents, record, samples

from clients import CLIENTS, CODECS, AtOffset, AtTime, Client

CreateTopic = Callable[..., str]
Written = Callable[[str, str], tuple[str, list[SentRecord]]]

# kafka-python reads its schemas in a way that Python 3.11 frowns upon; that is not ours to repair.
pytestmark = pytest.mark.filterwarnings("ignore:(open_text|read_text) is deprecated:DeprecationWarning")

HOUR_MS = 3_600_000
BIG_RECORD_BYTES = 1_000_000


def parameters(*names: str) -> ParameterSet:
    """Test cases of clients, marked `java` where one of them is Java's."""
    marks = [pytest.mark.java] if "java" in names else []
    return pytest.param(*names, marks=marks, id="-".join(names))


EACH_CLIENT = [parameters(name) for name in CLIENTS]
EACH_PAIR = [parameters(writer, reader) for writer in CLIENTS for reader in CLIENTS]


def client_for(name: str, codec: str = "none") -> Client:
    client = CLIENTS[name]
    if reason := client.missing(codec=codec):
        pytest.skip(reason)
    return client


@pytest.fixture(scope="session")
def written(broker_address: str, create_topic: CreateTopic) -> Written:
    """What a client wrote with a codec: written when it is first asked for, then read by many."""
    topics: dict[tuple[str, str], tuple[str, list[SentRecord]]] = {}

    def write(writer: str, codec: str) -> tuple[str, list[SentRecord]]:
        if (writer, codec) not in topics:
            client = client_for(writer, codec)
            topic = create_topic()
            records = [one for one in samples(int(time.time() * 1000)) if client.can_write(one)]
            offsets = client.produce(broker_address, topic, records, codec=codec)
            assert offsets == list(range(len(records)))
            topics[writer, codec] = topic, records
        return topics[writer, codec]

    return write


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("writer", "reader"), EACH_PAIR)
def test_a_client_reads_what_another_wrote(
    broker_address: str, written: Written, writer: str, reader: str, codec: str
) -> None:
    client = client_for(reader, codec)
    topic, records = written(writer, codec)
    found = client.consume(broker_address, topic, count=len(records))
    assert contents(found) == contents(records)
    assert [one["offset"] for one in found] == list(range(len(records)))
    assert [one["timestamp"] for one in found] == [one["timestamp"] for one in records]


@pytest.mark.parametrize(("writer", "reader"), EACH_PAIR)
def test_a_record_of_a_megabyte_arrives_whole(
    broker_address: str, create_topic: CreateTopic, writer: str, reader: str
) -> None:
    topic = create_topic()
    value = bytes(range(256)) * (BIG_RECORD_BYTES // 256)
    CLIENTS[writer].produce(broker_address, topic, [record(b"before"), record(value, key=b"big"), record(b"after")])
    found = CLIENTS[reader].consume(broker_address, topic, count=3)
    assert [one["value"] for one in found] == [b"before", value, b"after"]


@pytest.mark.parametrize("reader", EACH_CLIENT)
def test_reading_starts_at_any_offset(broker_address: str, written: Written, reader: str) -> None:
    topic, records = written("confluent", "lz4")  # one compressed batch: most offsets lie in the middle of it
    for offset in (0, 1, len(records) // 2, len(records) - 1):
        found = CLIENTS[reader].consume(broker_address, topic, count=len(records) - offset, start=AtOffset(offset))
        assert contents(found) == contents(records[offset:])
        assert found[0]["offset"] == offset


@pytest.mark.parametrize("reader", EACH_CLIENT)
def test_reading_starts_at_a_time(broker_address: str, create_topic: CreateTopic, reader: str) -> None:
    topic = create_topic()
    start_ms = int(time.time() * 1000) - 10 * HOUR_MS
    records = [record(b"%d" % hour, timestamp=start_ms + hour * HOUR_MS) for hour in range(8)]
    CLIENTS["confluent"].produce(broker_address, topic, records[:5])
    CLIENTS["confluent"].produce(broker_address, topic, records[5:])
    for hours, first in ((-1, 0), (0, 0), (2.5, 3), (3, 3), (5, 5), (6.1, 7)):
        start = AtTime(int(start_ms + hours * HOUR_MS))
        found = CLIENTS[reader].consume(broker_address, topic, count=8 - first, start=start)
        assert contents(found) == contents(records[first:])


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("writer", EACH_CLIENT)
def test_an_idempotent_producer_writes_everything_once(
    broker_address: str, create_topic: CreateTopic, writer: str, codec: str
) -> None:
    topic = create_topic()
    records = [record(b"%d" % number, key=b"%d" % (number % 7)) for number in range(500)]
    offsets = CLIENTS[writer].produce(broker_address, topic, records, codec=codec, idempotent=True)
    assert offsets == list(range(500))
    offsets = CLIENTS[writer].produce(broker_address, topic, records, codec=codec, idempotent=True)
    assert offsets == list(range(500, 1000))
    found = CLIENTS["confluent"].consume(broker_address, topic, count=1000)
    assert contents(found) == contents([*records, *records])


@pytest.mark.parametrize("writer", EACH_CLIENT)
def test_records_keep_their_order_over_many_batches(
    broker_address: str, create_topic: CreateTopic, writer: str
) -> None:
    topic = create_topic()
    records = [record(b"%06d" % number + b"." * 1000) for number in range(2000)]
    offsets = CLIENTS[writer].produce(broker_address, topic, records)
    assert offsets == list(range(2000))
    found = CLIENTS["kafka-python"].consume(broker_address, topic, count=2000)
    assert [one["value"] for one in found] == [one["value"] for one in records]
