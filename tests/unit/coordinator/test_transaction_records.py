"""Kafka's records of the transaction log, byte for byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.coordinator.transactions.records import decode_key, decode_value, encode_key, encode_value
from barnabas.coordinator.transactions.state import Transaction, TransactionState
from barnabas.model.errors import Malformed
from barnabas.model.ids import TopicPartition

TRANSACTION = Transaction(
    transactional_id="id",
    producer_id=7,
    previous_producer_id=5,
    next_producer_id=9,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({TopicPartition("t", 2), TopicPartition("t", 0), TopicPartition("a", 1)}),
    started_ms=1,
    updated_ms=2,
    client_version=2,
)


def test_a_key_is_a_version_and_the_id() -> None:
    assert encode_key("id") == bytes.fromhex("000000026964")
    assert decode_key(encode_key("id")) == "id"


def test_a_key_of_a_newer_version_is_not_ours() -> None:
    assert decode_key(bytes.fromhex("000100026964")) is None


def test_a_value_has_kafkas_layout_with_tags() -> None:
    expected = (
        "0001"  # version
        "000000000000000700030000ea6002"  # producer, epoch, time-out, PrepareCommit
        "030261020000000100"  # two topics: a with one partition
        "027403000000000000000200"  # t with two
        "00000000000000020000000000000001"  # updated, started
        "03"  # three tags: the producer before, the one after, the client's version
        "00080000000000000005"
        "01080000000000000009"
        "02020002"
    )  # fmt: skip
    assert encode_value(TRANSACTION, feature_level=2).hex() == expected


def test_below_feature_level_1_values_have_no_tags() -> None:
    value = encode_value(TRANSACTION, feature_level=0)
    assert value[:2] == b"\0\0"
    assert decode_value("id", value) == replace(
        TRANSACTION, previous_producer_id=-1, next_producer_id=-1, client_version=0
    )


def test_a_value_comes_back_as_it_went() -> None:
    assert decode_value("id", encode_value(TRANSACTION, feature_level=2)) == TRANSACTION


def test_an_empty_transaction_has_no_list_of_partitions() -> None:
    empty = replace(TRANSACTION, state=TransactionState.EMPTY, partitions=frozenset())
    assert encode_value(empty, feature_level=2)[17:18] == b"\0"
    assert decode_value("id", encode_value(empty, feature_level=2)) == empty


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"\0\x09" + bytes(40), encode_value(TRANSACTION, feature_level=2)[:20]],
    ids=["nothing", "half a version", "a version to come", "cut"],
)
def test_bytes_that_are_no_value_are_refused(content: bytes) -> None:
    with pytest.raises(Malformed):
        decode_value("id", content)


def test_a_state_that_nobody_knows_is_refused() -> None:
    value = bytearray(encode_value(TRANSACTION, feature_level=2))
    value[16] = 99
    with pytest.raises(Malformed, match="99"):
        decode_value("id", bytes(value))
