"""Answers of the quorum on the wire, both ways; the counterpart of ``wire_requests.py``.

An answer names the leader and one endpoint of it, the one for the listener that members of the quorum use among
themselves. An answer with an error of its own, about the request as a whole, brings no news and counts as a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.model import errors
from barnabas.model.errors import error_of
from barnabas.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID
from barnabas.raft import messages
from barnabas.raft.control_records import batches_of
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.voters import Endpoint
from barnabas.wire.message import Message
from barnabas.wire.messages import add_raft_voter, begin_quorum_epoch, end_quorum_epoch, remove_raft_voter
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotResponse
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterResponse
from barnabas.wire.messages.vote import VoteResponse

BeginResponse = begin_quorum_epoch.BeginQuorumEpochResponse
EndResponse = end_quorum_epoch.EndQuorumEpochResponse
AddResponse = add_raft_voter.AddRaftVoterResponse
RemoveResponse = remove_raft_voter.RemoveRaftVoterResponse
KRAFT_VERSION_FEATURE = "kraft.version"


def response_to_wire(response: messages.Response, kind: type[Message]) -> Message:
    """The message of type ``kind`` that carries an answer."""
    match response:
        case messages.VoterChangeResponse(error=error, message=text):
            return kind(error_code=error.code, error_message=text)
        case messages.UpdateVoterResponse():
            return _update(response)
        case messages.FetchResponse():
            return _fetch(response)
        case messages.FetchSnapshotResponse():
            return _fetch_snapshot(response)
        case messages.SupportResponse():
            raise AssertionError("versions are answered by the broker, not by the quorum")
    facts: dict[str, Any] = {
        "error_code": response.error.code,
        "leader_id": response.leader_id,
        "leader_epoch": response.epoch,
    }
    if isinstance(response, messages.VoteResponse):
        facts["vote_granted"] = response.is_granted
    wire: Any = kind
    topic = wire.TopicData(topic_name=METADATA_TOPIC, partitions=[wire.PartitionData(**facts)])
    message: Message = wire(topics=[topic], node_endpoints=_nodes(wire.NodeEndpoint, response))
    return message


def _nodes(kind: Any, response: messages.LeaderFacts) -> list[Any]:
    if response.leader_id < 0 or not response.endpoints:
        return []
    endpoint = response.endpoints[0]
    return [kind(node_id=response.leader_id, host=endpoint.host, port=endpoint.port)]


def _fetch(response: messages.FetchResponse) -> FetchResponse:
    partition = FetchResponse.PartitionData(
        error_code=response.error.code,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=response.leader_id, leader_epoch=response.epoch),
        records=response.records if isinstance(response.records, bytes | bytearray | memoryview) else b"",
    )
    if response.diverging is not None:
        diverging = response.diverging
        partition.diverging_epoch = FetchResponse.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.offset)
    if response.snapshot is not None:
        snapshot = response.snapshot
        partition.snapshot_id = FetchResponse.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
    topic = FetchResponse.FetchableTopicResponse(
        topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
    )
    return FetchResponse(responses=[topic], node_endpoints=_nodes(FetchResponse.NodeEndpoint, response))


def _fetch_snapshot(response: messages.FetchSnapshotResponse) -> FetchSnapshotResponse:
    snapshot = response.snapshot or OffsetAndEpoch(-1, -1)
    partition = FetchSnapshotResponse.PartitionSnapshot(
        error_code=response.error.code,
        snapshot_id=FetchSnapshotResponse.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(
            leader_id=response.leader_id, leader_epoch=response.epoch
        ),
        size=response.size_bytes,
        position=response.position,
        unaligned_records=response.data if isinstance(response.data, bytes | memoryview) else b"",
    )
    topic = FetchSnapshotResponse.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return FetchSnapshotResponse(topics=[topic], node_endpoints=_nodes(FetchSnapshotResponse.NodeEndpoint, response))


def _update(response: messages.UpdateVoterResponse) -> UpdateRaftVoterResponse:
    endpoint = response.endpoints[0] if response.endpoints else Endpoint("", "", -1)
    leader = UpdateRaftVoterResponse.CurrentLeader(
        leader_id=response.leader_id, leader_epoch=response.epoch, host=endpoint.host, port=endpoint.port
    )
    return UpdateRaftVoterResponse(error_code=response.error.code, current_leader=leader)


def response_of_wire(message: Message, listener: str) -> messages.Response | None:
    """The value of an answer; None if it says nothing but that the request failed. CorruptBatch for broken records."""
    match message:
        case ApiVersionsResponse():
            return _support(message)
        case AddResponse() | RemoveResponse():
            return messages.VoterChangeResponse(error=error_of(message.error_code), message=message.error_message)
        case UpdateRaftVoterResponse(error_code=code, current_leader=leader):
            endpoints = (Endpoint(listener, leader.host, leader.port),) if leader.host else ()
            return messages.UpdateVoterResponse(
                error=error_of(code), leader_id=leader.leader_id, epoch=leader.leader_epoch, endpoints=endpoints
            )
    if getattr(message, "error_code", 0) != errors.NONE.code:
        return None
    match message:
        case FetchResponse():
            return _fetch_of_wire(message, listener)
        case FetchSnapshotResponse():
            return _fetch_snapshot_of_wire(message, listener)
        case VoteResponse():
            vote = _only(message.topics)
            if vote is None:
                return None
            facts = _facts(vote, vote.leader_id, vote.leader_epoch, message.node_endpoints, listener)
            return messages.VoteResponse(is_granted=vote.vote_granted, **facts)
        case BeginResponse():
            begin = _only(message.topics)
            if begin is None:
                return None
            facts = _facts(begin, begin.leader_id, begin.leader_epoch, message.node_endpoints, listener)
            return messages.BeginQuorumEpochResponse(**facts)
        case EndResponse():
            end = _only(message.topics)
            if end is None:
                return None
            facts = _facts(end, end.leader_id, end.leader_epoch, message.node_endpoints, listener)
            return messages.EndQuorumEpochResponse(**facts)
    return None


def _only(topics: Sequence[Any]) -> Any:
    return topics[0].partitions[0] if len(topics) == 1 and len(topics[0].partitions) == 1 else None


def _facts(partition: Any, leader_id: int, epoch: int, nodes: Sequence[Any], listener: str) -> dict[str, Any]:
    endpoints = tuple(Endpoint(listener, node.host, node.port) for node in nodes if node.node_id == leader_id)
    return {
        "error": error_of(partition.error_code),
        "leader_id": leader_id,
        "epoch": epoch,
        "endpoints": endpoints,
    }


def _fetch_of_wire(message: FetchResponse, listener: str) -> messages.FetchResponse | None:
    partition: FetchResponse.PartitionData | None = _only(message.responses)
    if partition is None:
        return None
    leader, diverging, snapshot = partition.current_leader, partition.diverging_epoch, partition.snapshot_id
    assert partition.records is None or isinstance(partition.records, bytes | bytearray | memoryview)
    records = bytes(partition.records or b"")  # kept until it is written, longer than the receive buffer may be
    facts = _facts(partition, leader.leader_id, leader.leader_epoch, message.node_endpoints, listener)
    return messages.FetchResponse(
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging=OffsetAndEpoch(diverging.end_offset, diverging.epoch) if diverging.epoch >= 0 else None,
        snapshot=OffsetAndEpoch(snapshot.end_offset, snapshot.epoch) if snapshot.epoch >= 0 else None,
        records=records,
        batches=batches_of(records),
        **facts,
    )


def _fetch_snapshot_of_wire(message: FetchSnapshotResponse, listener: str) -> messages.FetchSnapshotResponse | None:
    piece: FetchSnapshotResponse.PartitionSnapshot | None = _only(message.topics)
    if piece is None:
        return None
    leader, data = piece.current_leader, piece.unaligned_records or b""
    assert isinstance(data, bytes | bytearray | memoryview)
    return messages.FetchSnapshotResponse(
        snapshot=OffsetAndEpoch(piece.snapshot_id.end_offset, piece.snapshot_id.epoch),
        position=piece.position,
        size_bytes=piece.size,
        data=bytes(data),
        data_bytes=len(data),
        **_facts(piece, leader.leader_id, leader.leader_epoch, message.node_endpoints, listener),
    )


def _support(message: ApiVersionsResponse) -> messages.SupportResponse:
    for feature in message.supported_features:
        if feature.name == KRAFT_VERSION_FEATURE:
            return messages.SupportResponse(
                error=error_of(message.error_code),
                kraft_version_min=feature.min_version,
                kraft_version_max=feature.max_version,
            )
    return messages.SupportResponse(error=error_of(message.error_code))
