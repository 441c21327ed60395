"""Kafka's records of ``__transaction_state``: one line for each transactional id, its state as of the last change.

A key and a value begin with the int16 version of their schema. What the states mean is in ``transaction_state``; the
transaction coordinator's shard writes and replays these records, and ``barnabas dump`` may read them.
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.coordinator.transactions.state import Transaction, TransactionState
from barnabas.model.errors import Malformed
from barnabas.model.ids import NO_PRODUCER_EPOCH, TopicPartition
from barnabas.wire.message import Message, decode, encode
from barnabas.wire.schema import array, int8, int16, int32, int64, string

KEY_VERSION: Final = 0
TAGS_SINCE: Final = 1  # the version of a value that can say more than the first brokers knew
FLEXIBLE_RECORDS_SINCE: Final = 1  # the level of the feature transaction.version that allows such values

_VERSION: Final = struct.Struct(">h")


class TransactionLogKey(Message, versions=range(1)):
    transactional_id: str = string()


class TransactionLogValue(Message, versions=range(2), flexible=1):
    class PartitionsSchema(Message):
        topic: str = string()
        partition_ids: list[int] = array(int32)

    producer_id: int = int64()
    previous_producer_id: int = int64(default=-1, since=1, tag=0, tagged_since=1, ignorable=True)
    next_producer_id: int = int64(default=-1, since=1, tag=1, tagged_since=1, ignorable=True)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16(default=-1, since=1, tag=3, tagged_since=1, ignorable=True)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable=True)
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(default=0, since=1, tag=2, tagged_since=1, ignorable=True)


def encode_key(transactional_id: str) -> bytes:
    return _VERSION.pack(KEY_VERSION) + encode(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def decode_key(key: bytes) -> str | None:
    """The transactional id; None for a key of a version that a newer broker wrote, which is not ours to judge."""
    if _version_of(key) != KEY_VERSION:
        return None
    return decode(TransactionLogKey, KEY_VERSION, key, _VERSION.size).transactional_id


def encode_value(transaction: Transaction, *, feature_level: int) -> bytes:
    version = TAGS_SINCE if feature_level >= FLEXIBLE_RECORDS_SINCE else 0
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(index)
    partitions = [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()
    ]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return _VERSION.pack(version) + encode(value, version)


def decode_value(transactional_id: str, value: bytes) -> Transaction:
    version = _version_of(value)
    if version not in TransactionLogValue.versions:
        raise Malformed(f"version {version} of a transaction's state is not known")
    read = decode(TransactionLogValue, version, value, _VERSION.size)
    try:
        state = TransactionState(read.transaction_status)
    except ValueError:
        raise Malformed(f"{read.transaction_status} is no state of a transaction") from None
    return Transaction(
        transactional_id=transactional_id,
        producer_id=read.producer_id,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        producer_epoch=read.producer_epoch,
        last_producer_epoch=NO_PRODUCER_EPOCH,  # never written: a retry that spans a change of coordinator is fenced
        timeout_ms=read.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(each.topic, index)
            for each in read.transaction_partitions or ()
            for index in each.partition_ids
        ),
        started_ms=read.transaction_start_timestamp_ms,
        updated_ms=read.transaction_last_update_timestamp_ms,
        client_version=read.client_transaction_version,
    )


def _version_of(content: bytes) -> int:
    if len(content) < _VERSION.size:
        raise Malformed("a record of the transaction log has a version")
    version: int = _VERSION.unpack_from(content)[0]
    return version
