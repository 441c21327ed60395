"""Produce over the wire: acknowledgements, what a batch must be, idempotence, timestamps."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from talk import Talk, batch, produce_request

from barnabas.model import errors
from barnabas.testing import Broker
from barnabas.wire.batch import seal
from barnabas.wire.compression import Codec
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.records import encode_batch

HOUR_MS = 3_600_000
SEQUENCE_MAX = 2**31 - 1


def patched(position: int, value: bytes, *, is_sealed: bool = True, **more: Any) -> bytes:
    """A good batch with some bytes of its header replaced, and its checksum made to fit."""
    data = batch(b"value", **more)
    data[position : position + len(value)] = value
    if is_sealed:
        seal(data, 0)
    return bytes(data)


# --- acknowledgements -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledgement_names_the_offset(talk: Talk, name: str, acks: int) -> None:
    talk.create(name)
    assert [talk.produce(name, batch(b"a", b"b"), acks=acks).base_offset for _ in range(3)] == [0, 2, 4]
    assert len(talk.read(name)) == 6


def test_no_acknowledgement_is_asked_for_and_none_comes(talk: Talk, name: str) -> None:
    talk.create(name)
    talk.tell(produce_request(name, batch(b"silent"), acks=0), 12)
    assert talk.produce(name, batch(b"loud")).base_offset == 1
    assert [record.value for record in talk.read(name)] == [b"silent", b"loud"]


def test_an_error_without_acknowledgement_closes_the_connection(talk: Talk, name: str) -> None:
    talk.tell(produce_request(name, batch(b"x"), acks=0), 12)
    talk.until_closed()


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
def test_other_acknowledgements_are_refused(talk: Talk, name: str, acks: int) -> None:
    talk.create(name)
    assert talk.produce(name, batch(b"x"), acks=acks).error_code == errors.INVALID_REQUIRED_ACKS.code
    assert talk.read(name) == []


def test_partitions_succeed_and_fail_alone(talk: Talk, name: str) -> None:
    talk.create(name, 2)
    parts = [
        ProduceRequest.PartitionProduceData(index=index, records=records)
        for index, records in ((0, batch(b"x")), (5, batch(b"x")), (1, b"rubbish"), (-1, batch(b"x")))
    ]
    topics = [
        ProduceRequest.TopicProduceData(name=name, partition_data=parts),
        ProduceRequest.TopicProduceData(name="nowhere", partition_data=parts[:1]),
    ]
    answer = talk.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 12)
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION.code
    codes = [[row.error_code for row in topic.partition_responses] for topic in answer.responses]
    assert codes == [[0, unknown, errors.INVALID_RECORD.code, unknown], [unknown]]


# --- what a batch must be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (None, errors.INVALID_RECORD),
        (b"", errors.INVALID_RECORD),
        (b"\x00" * 61, errors.INVALID_RECORD),
        (bytes(batch(b"x"))[:-1], errors.INVALID_RECORD),
        (bytes(batch(b"x") * 2), errors.INVALID_RECORD),
        (patched(16, b"\x00"), errors.INVALID_RECORD),
        (patched(16, b"\x01"), errors.INVALID_RECORD),
        (patched(16, b"\x03"), errors.INVALID_RECORD),
        (patched(17, b"\x00\x00\x00\x00", is_sealed=False), errors.CORRUPT_MESSAGE),
        (patched(21, b"\x00\x20"), errors.INVALID_RECORD),
        (patched(21, b"\x00\x08"), errors.INVALID_TIMESTAMP),
        (patched(21, b"\x00\x07"), errors.UNSUPPORTED_COMPRESSION_TYPE),
        (patched(21, b"\x00\x01"), errors.INVALID_RECORD),
        (patched(23, b"\x00\x00\x00\x07"), errors.INVALID_RECORD),
        (patched(57, b"\x00\x00\x00\x07"), errors.INVALID_RECORD),
        (patched(57, b"\x7f\xff\xff\xff"), errors.INVALID_RECORD),
        (patched(0, b"\x00\x00\x00\x00\x00\x00\x00\x05"), errors.INVALID_RECORD),
        (patched(43, b"\x00" * 8), errors.INVALID_RECORD),
    ],
)
def test_a_wrong_batch_is_refused(talk: Talk, name: str, records: bytes | None, error: errors.WireError) -> None:
    talk.create(name)
    row = talk.produce(name, records)
    assert (row.error_code, row.base_offset) == (error.code, -1)
    assert talk.read(name) == []
    assert talk.produce(name, batch(b"good")).base_offset == 0


def test_a_compacted_topic_names_the_records_without_a_key(talk: Talk, name: str) -> None:
    talk.create(name, cleanup_policy="compact")
    row = talk.produce(name, batch(b"x", b"y", key=None))
    assert row.error_code == errors.INVALID_RECORD.code
    assert [each.batch_index for each in row.record_errors] == [0, 1]
    assert talk.produce(name, batch(b"x")).error_code == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_is_stored_as_it_came(talk: Talk, name: str, codec: Codec) -> None:
    talk.create(name)
    sent = batch(b"a" * 100, b"b" * 100, codec=codec)
    assert talk.produce(name, bytes(sent)).error_code == 0
    assert bytes(talk.fetch(name).records or b"")[61:] == bytes(sent)[61:]
    assert [record.value for record in talk.read(name)] == [b"a" * 100, b"b" * 100]


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_large_compressed_batch_is_checked_in_a_thread(talk: Talk, name: str, codec: Codec) -> None:
    talk.create(name)
    noise = bytes((number * 7919 + number // 256) % 251 for number in range(150_000))
    assert talk.produce(name, bytes(batch(noise, noise[::-1], codec=codec))).error_code == 0
    assert [record.value for record in talk.read(name)] == [noise, noise[::-1]]
    broken = bytearray(batch(noise, codec=codec))
    broken[-10:] = bytes(10)
    assert talk.produce(name, bytes(broken)).error_code == errors.CORRUPT_MESSAGE.code
    seal(broken, 0)
    assert talk.produce(name, bytes(broken)).error_code in (0, errors.INVALID_RECORD.code)


# --- timestamps -------------------------------------------------------------------------------------------------------


def timed(*timestamps: int, base: int) -> bytes:
    """A batch whose first timestamp is anything at all; the others keep their distance to it."""
    data = encode_batch([(timestamp, b"k", b"v", ()) for timestamp in timestamps])
    data[27:35] = struct.pack(">q", base)
    seal(data, 0)
    return bytes(data)


@pytest.mark.parametrize("shift", [2 * HOUR_MS, 2**62])
def test_a_timestamp_from_the_future_is_refused(talk: Talk, shared_broker: Broker, name: str, shift: int) -> None:
    talk.create(name)
    now_ms = shared_broker.node.world.clock.wall_ms()
    row = talk.produce(name, timed(1, base=now_ms + shift))
    assert row.error_code == errors.INVALID_TIMESTAMP.code
    assert [each.batch_index for each in row.record_errors] == [0]
    assert talk.produce(name, batch(b"x", timestamp=now_ms + HOUR_MS // 2)).error_code == 0


def test_a_timestamp_from_the_past_is_refused_where_the_topic_says_so(talk: Talk, name: str) -> None:
    talk.create(name, message_timestamp_before_max_ms="1000")
    assert talk.produce(name, batch(b"x", timestamp=1000)).error_code == errors.INVALID_TIMESTAMP.code


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(
    ("timestamps", "base"),
    [
        ((5,), -1),
        ((5,), -(2**62)),
        ((5,), 0),
        ((5,), 2**63 - 1),
        ((5, 6), 2**63 - 1),
        ((5,), -(2**63)),
        ((5, 4), -(2**63)),
        ((5, 6), -1),
    ],
)
def test_no_timestamp_breaks_anything(
    talk: Talk, name: str, timestamps: tuple[int, ...], base: int, bounded: bool
) -> None:
    largest = str(2**63 - 1)
    talk.create(name, **({} if bounded else {"message_timestamp_after_max_ms": largest}))
    talk.produce(name, timed(*timestamps, base=base))
    assert talk.is_open
    assert talk.produce(name, batch(b"good")).error_code == 0
    for asked in (-3, 0, 2**63 - 1, 1_700_000_000_000):
        assert talk.offset(name, asked).error_code == 0
    assert talk.fetch(name).error_code == 0


# --- idempotence ------------------------------------------------------------------------------------------------------


def producer(talk: Talk) -> int:
    answer = talk.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    producer_id: int = answer.producer_id
    return producer_id


def send(talk: Talk, name: str, producer_id: int, sequence: int, *, epoch: int = 0, count: int = 1) -> Any:
    values = [b"%d" % (sequence + number) for number in range(count)]
    records = batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    row = talk.produce(name, bytes(records))
    return row.base_offset if row.error_code == 0 else errors.error_of(row.error_code)


def test_producer_ids_are_never_the_same(talk: Talk) -> None:
    assert len({producer(talk) for _ in range(50)}) == 50


def test_five_batches_may_come_again_and_are_answered_as_before(talk: Talk, name: str) -> None:
    talk.create(name)
    me = producer(talk)
    assert [send(talk, name, me, 2 * number, count=2) for number in range(7)] == [0, 2, 4, 6, 8, 10, 12]
    assert [send(talk, name, me, 2 * number, count=2) for number in range(2, 7)] == [4, 6, 8, 10, 12]
    assert len(talk.read(name)) == 14
    assert send(talk, name, me, 0, count=2) is errors.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_refused_and_nothing_is_lost(talk: Talk, name: str) -> None:
    talk.create(name)
    me = producer(talk)
    assert send(talk, name, me, 0) == 0
    assert send(talk, name, me, 2) is errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(talk, name, me, 1) == 1
    assert send(talk, name, me, 2) == 2


def test_a_new_epoch_starts_at_zero_and_fences_the_old(talk: Talk, name: str) -> None:
    talk.create(name)
    me = producer(talk)
    assert send(talk, name, me, 0) == 0
    assert send(talk, name, me, 1, epoch=1) is errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(talk, name, me, 0, epoch=1) == 1
    assert send(talk, name, me, 1) is errors.INVALID_PRODUCER_EPOCH


def test_sequences_wrap(talk: Talk, name: str) -> None:
    talk.create(name)
    me = producer(talk)
    assert send(talk, name, me, SEQUENCE_MAX - 1, count=2) == 0
    assert send(talk, name, me, 0) == 2
    assert send(talk, name, me, SEQUENCE_MAX - 1, count=2) == 0


def test_a_batch_may_cross_the_wrap(talk: Talk, name: str) -> None:
    talk.create(name)
    me = producer(talk)
    assert send(talk, name, me, SEQUENCE_MAX, count=2) == 0
    assert send(talk, name, me, 1) == 2


def test_a_producer_nobody_knows_may_start_anywhere(talk: Talk, name: str) -> None:
    talk.create(name)
    assert send(talk, name, producer(talk), 41) == 0


def test_producers_are_described(talk: Talk, name: str) -> None:
    talk.create(name)
    me = producer(talk)
    send(talk, name, me, 0, count=3)
    topics = [DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0, 9])]
    known, unknown = talk.ask(DescribeProducersRequest(topics=topics)).topics[0].partitions
    (state,) = known.active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (me, 0, 2)
    assert state.current_txn_start_offset == -1
    assert unknown.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION.code


def test_a_silent_producer_is_forgotten() -> None:
    with Broker(settings={"producer.id.expiration.ms": "60000"}) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("t")
        me = producer(talk)
        now_ms = broker.node.world.clock.wall_ms()
        records = batch(b"x", timestamp=now_ms, producer_id=me, producer_epoch=0, base_sequence=0)
        assert talk.produce("t", bytes(records)).error_code == 0
        broker.clock.advance("1h")
        topics = [DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])]
        assert talk.ask(DescribeProducersRequest(topics=topics)).topics[0].partitions[0].active_producers == []


# --- internal topics --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_clients_do_not_write_to_the_topics_of_coordinators(talk: Talk, topic: str) -> None:
    talk.ask(FindCoordinatorRequest(key_type=int(topic == "__transaction_state"), coordinator_keys=["any"]), 4)
    keyed = bytes(encode_batch([(0, b"key", b"value", ())]))
    assert talk.produce(topic, keyed).error_code == errors.INVALID_TOPIC_EXCEPTION.code
