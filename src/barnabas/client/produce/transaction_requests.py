"""The requests that make partitions and offsets a part of a transaction, from the producer's side. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.group.commits import GroupMetadata, OffsetAndMetadata
from barnabas.client.partitions.protocol import by_topic
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest


class OpenTransaction(NamedTuple):
    """All that another process needs to end a transaction; plain values, so it can be written down anywhere."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


def add_partitions_request(owner: OpenTransaction, partitions: list[TopicPartition]) -> AddPartitionsToTxnRequest:
    """In the layout up to version 3: later ones are spoken between brokers."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=owner.transactional_id,
        v3_and_below_producer_id=owner.producer_id,
        v3_and_below_producer_epoch=owner.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ],
    )


def add_offsets_request(owner: OpenTransaction, group_id: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=owner.transactional_id,
        producer_id=owner.producer_id,
        producer_epoch=owner.producer_epoch,
        group_id=group_id,
    )


def offset_commit_request(
    owner: OpenTransaction,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    topics: Mapping[str, list[int]],
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=owner.transactional_id,
        group_id=group.group_id,
        producer_id=owner.producer_id,
        producer_epoch=owner.producer_epoch,
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.instance_id,
        topics=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[TopicPartition(topic, index)].offset,
                        committed_leader_epoch=offsets[TopicPartition(topic, index)].leader_epoch,
                        committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in topics.items()
        ],
    )
