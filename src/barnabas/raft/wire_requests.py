"""Requests of the quorum on the wire: the machine's values become Kafka's messages and Kafka's messages become values.

Only one partition is ever meant, ``__cluster_metadata-0``; a request for another cluster or partition is refused here,
before the machine sees it. Answers are translated in ``wire_responses.py``. Only the driver uses this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, NO_BROKER, ZERO_UUID
from barnabas.model.version import __version__
from barnabas.raft import messages
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter
from barnabas.transport.versions import SOFTWARE_NAME
from barnabas.wire.message import Message
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.wire.messages.vote import VoteRequest

FETCH_BYTES_MAX: Final = 8 << 20  # as Kafka's quorum asks for
VOTER_CHANGE_TIMEOUT_MS: Final = 30_000


def request_to_wire(request: messages.Request, cluster_id: str) -> Message:
    match request:
        case messages.Vote():
            return _vote(request, cluster_id)
        case messages.BeginQuorumEpoch():
            return _begin(request, cluster_id)
        case messages.EndQuorumEpoch():
            return _end(request, cluster_id)
        case messages.Fetch():
            return _fetch(request, cluster_id)
        case messages.FetchSnapshot():
            return _fetch_snapshot(request, cluster_id)
        case messages.AddVoter(voter, waits_for_commit):
            return AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=VOTER_CHANGE_TIMEOUT_MS,
                voter_id=voter.id,
                voter_directory_id=voter.key.directory_id,
                listeners=_named(AddRaftVoterRequest.Listener, voter.endpoints),
                ack_when_committed=waits_for_commit,
            )
        case messages.RemoveVoter(key):
            return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=key.id, voter_directory_id=key.directory_id)
        case messages.UpdateVoter(epoch, voter):
            return UpdateRaftVoterRequest(
                cluster_id=cluster_id,
                current_leader_epoch=epoch,
                voter_id=voter.id,
                voter_directory_id=voter.key.directory_id,
                listeners=_named(UpdateRaftVoterRequest.Listener, voter.endpoints),
                k_raft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
                    min_supported_version=voter.kraft_version_min, max_supported_version=voter.kraft_version_max
                ),
            )
        case messages.AskSupport():
            return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)


def _named(kind: Any, endpoints: Sequence[Endpoint]) -> list[Any]:
    return [kind(name=endpoint.listener, host=endpoint.host, port=endpoint.port) for endpoint in endpoints]


def _endpoints(named: Sequence[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in named)


def _vote(request: messages.Vote, cluster_id: str) -> VoteRequest:
    partition = VoteRequest.PartitionData(
        replica_epoch=request.epoch,
        replica_id=request.replica.id,
        replica_directory_id=request.replica.directory_id,
        voter_directory_id=request.voter.directory_id,
        last_offset_epoch=request.log_end.epoch,
        last_offset=request.log_end.offset,
        pre_vote=request.is_pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=request.voter.id, topics=[topic])


def _begin(request: messages.BeginQuorumEpoch, cluster_id: str) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequest.PartitionData(
        voter_directory_id=request.voter.directory_id, leader_id=request.leader_id, leader_epoch=request.epoch
    )
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=request.voter.id,
        topics=[BeginQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=_named(BeginQuorumEpochRequest.LeaderEndpoint, request.endpoints),
    )


def _end(request: messages.EndQuorumEpoch, cluster_id: str) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequest.PartitionData(
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_successors=[key.id for key in request.successors],
        preferred_candidates=[
            EndQuorumEpochRequest.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
            for key in request.successors
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[EndQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=_named(EndQuorumEpochRequest.LeaderEndpoint, request.endpoints),
    )


def _fetch(request: messages.Fetch, cluster_id: str) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        current_leader_epoch=request.epoch,
        fetch_offset=request.log_end.offset,
        last_fetched_epoch=request.log_end.epoch,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=FetchRequest.ReplicaState(replica_id=request.replica.id),
        max_wait_ms=request.wait_ms,
        max_bytes=FETCH_BYTES_MAX,
        topics=[FetchRequest.FetchTopic(topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def _fetch_snapshot(request: messages.FetchSnapshot, cluster_id: str) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequest.PartitionSnapshot(
        current_leader_epoch=request.epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=request.snapshot.offset, epoch=request.snapshot.epoch),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=request.replica.id,
        max_bytes=FETCH_BYTES_MAX,
        topics=[FetchSnapshotRequest.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


def request_of_wire(message: Message, cluster_id: str) -> messages.Request:
    """The value of a request that is meant for us; ApiError if it is not."""
    claimed = getattr(message, "cluster_id", None)
    if claimed is not None and claimed != cluster_id:
        raise ApiError(errors.INCONSISTENT_CLUSTER_ID, f"this is the cluster {cluster_id}, not {claimed}")
    match message:
        case VoteRequest():
            vote = _only(message.topics)
            return messages.Vote(
                ReplicaKey(vote.replica_id, vote.replica_directory_id),
                ReplicaKey(message.voter_id, vote.voter_directory_id),
                vote.replica_epoch,
                OffsetAndEpoch(vote.last_offset, vote.last_offset_epoch),
                vote.pre_vote,
            )
        case BeginQuorumEpochRequest():
            begin = _only(message.topics)
            voter = ReplicaKey(message.voter_id, begin.voter_directory_id)
            endpoints = _endpoints(message.leader_endpoints)
            return messages.BeginQuorumEpoch(begin.leader_id, begin.leader_epoch, endpoints, voter)
        case EndQuorumEpochRequest():
            end = _only(message.topics)
            keys = [ReplicaKey(one.candidate_id, one.candidate_directory_id) for one in end.preferred_candidates]
            keys = keys or [ReplicaKey(successor, ZERO_UUID) for successor in end.preferred_successors]
            endpoints = _endpoints(message.leader_endpoints)
            return messages.EndQuorumEpoch(end.leader_id, end.leader_epoch, endpoints, tuple(keys))
        case FetchRequest():
            fetch = _only(message.topics)
            replica_id = message.replica_state.replica_id
            return messages.Fetch(
                ReplicaKey(replica_id if replica_id != NO_BROKER else message.replica_id, fetch.replica_directory_id),
                fetch.current_leader_epoch,
                OffsetAndEpoch(fetch.fetch_offset, fetch.last_fetched_epoch),
                message.max_wait_ms,
                fetch.high_watermark,
            )
        case FetchSnapshotRequest():
            piece = _only(message.topics)
            snapshot = OffsetAndEpoch(piece.snapshot_id.end_offset, piece.snapshot_id.epoch)
            replica = ReplicaKey(message.replica_id, piece.replica_directory_id)
            return messages.FetchSnapshot(replica, piece.current_leader_epoch, snapshot, piece.position)
    return _voter_change(message)


def _voter_change(message: Message) -> messages.Request:
    match message:
        case AddRaftVoterRequest():
            key = _voter_key(message.voter_id, message.voter_directory_id)
            return messages.AddVoter(Voter(key, _endpoints(message.listeners)), message.ack_when_committed)
        case RemoveRaftVoterRequest():
            return messages.RemoveVoter(_voter_key(message.voter_id, message.voter_directory_id))
        case UpdateRaftVoterRequest():
            versions = message.k_raft_version_feature
            voter = Voter(
                _voter_key(message.voter_id, message.voter_directory_id),
                _endpoints(message.listeners),
                versions.min_supported_version,
                versions.max_supported_version,
            )
            return messages.UpdateVoter(message.current_leader_epoch, voter)
    raise ApiError(errors.INVALID_REQUEST, f"{type(message).__name__} is not for the quorum")


def _voter_key(voter_id: int, directory_id: Any) -> ReplicaKey:
    if voter_id < 0 or directory_id == ZERO_UUID:
        raise ApiError(errors.INVALID_REQUEST, "a voter has an id and a directory id")
    return ReplicaKey(voter_id, directory_id)


def _only(topics: Sequence[Any]) -> Any:
    """The one partition that a request of the quorum is about."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        topic, partition = topics[0], topics[0].partitions[0]
        index = partition.partition if hasattr(partition, "partition") else partition.partition_index
        name = next((getattr(topic, field) for field in ("topic_name", "name", "topic") if hasattr(topic, field)), "")
        is_ours = name == METADATA_TOPIC or getattr(topic, "topic_id", None) == METADATA_TOPIC_ID
        if is_ours and index == 0:
            return partition
    raise ApiError(errors.INVALID_REQUEST, f"only {METADATA_TOPIC}-0 is led by the quorum")
