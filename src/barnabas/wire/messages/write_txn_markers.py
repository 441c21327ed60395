"""WriteTxnMarkers: the transaction coordinator has leaders write the marker that ends a transaction.

Version 2 says which version of transactions the marker belongs to.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, boolean, int8, int16, int32, int64, string


class WriteTxnMarkersRequest(Message, api=ApiKey.WRITE_TXN_MARKERS, versions=range(1, 3), flexible=1):
    class WritableTxnMarker(Message):
        producer_id: int = int64()
        producer_epoch: int = int16()
        transaction_result: bool = boolean()
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = array("WritableTxnMarkerTopic")
        coordinator_epoch: int = int32()
        transaction_version: int = int8(since=2, ignorable=True)

    class WritableTxnMarkerTopic(Message):
        name: str = string()
        partition_indexes: list[int] = array(int32)

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WriteTxnMarkersResponse(Message, api=ApiKey.WRITE_TXN_MARKERS, versions=range(1, 3), flexible=1):
    class WritableTxnMarkerResult(Message):
        producer_id: int = int64()
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = array("WritableTxnMarkerTopicResult")

    class WritableTxnMarkerTopicResult(Message):
        name: str = string()
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = array(
            "WritableTxnMarkerPartitionResult"
        )

    class WritableTxnMarkerPartitionResult(Message):
        partition_index: int = int32()
        error_code: int = int16()

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
