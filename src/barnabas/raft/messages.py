"""What replicas of the quorum say to each other, as small values: only what the machine reads and decides.

Cluster ids, topic names, versions and bytes belong to the wire; ``wire_requests.py`` turns these values into Kafka's
messages and back. The simulation carries them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_BROKER
from barnabas.raft.log_view import BatchFacts, OffsetAndEpoch
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter

HIGH_WATERMARK_UNKNOWN: Final = -1
HIGH_WATERMARK_UNTOLD: Final = 2**63 - 1  # an older replica that does not say what it knows never waits for it


@dataclass(frozen=True, slots=True)
class Vote:
    replica: ReplicaKey  # who asks
    voter: ReplicaKey  # who is asked
    epoch: int
    log_end: OffsetAndEpoch
    is_pre_vote: bool


@dataclass(frozen=True, slots=True)
class BeginQuorumEpoch:
    leader_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...]
    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class EndQuorumEpoch:
    leader_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...]
    successors: tuple[ReplicaKey, ...]  # the longest log first


@dataclass(frozen=True, slots=True)
class Fetch:
    """ "My log is durable up to here; what comes next?" A voter's fetch is its acknowledgement."""

    replica: ReplicaKey
    epoch: int
    log_end: OffsetAndEpoch
    wait_ms: int
    high_watermark: int = HIGH_WATERMARK_UNTOLD  # KIP-1166: the answer comes at once when the leader knows a higher one


@dataclass(frozen=True, slots=True)
class FetchSnapshot:
    replica: ReplicaKey
    epoch: int
    snapshot: OffsetAndEpoch
    position: int


@dataclass(frozen=True, slots=True)
class AddVoter:
    voter: Voter
    waits_for_commit: bool = True


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    key: ReplicaKey


@dataclass(frozen=True, slots=True)
class UpdateVoter:
    epoch: int
    voter: Voter


@dataclass(frozen=True, slots=True)
class AskSupport:
    """Which kraft.version does the new voter speak? (ApiVersions on the wire.)"""


Request: TypeAlias = (
    Vote | BeginQuorumEpoch | EndQuorumEpoch | Fetch | FetchSnapshot | AddVoter | RemoveVoter | UpdateVoter | AskSupport
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderFacts:
    """What every answer says first: how it went, and whom the answering replica follows in which epoch."""

    error: WireError = errors.NONE
    leader_id: int = NO_BROKER
    epoch: int = 0
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteResponse(LeaderFacts):
    is_granted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginQuorumEpochResponse(LeaderFacts):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class EndQuorumEpochResponse(LeaderFacts):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse(LeaderFacts):
    """``read_offset`` asks whoever carries the answer to put in the records from there; ``batches`` are their facts."""

    high_watermark: int = HIGH_WATERMARK_UNKNOWN
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None
    read_offset: int = -1
    records: object = None
    batches: tuple[BatchFacts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSnapshotResponse(LeaderFacts):
    """``data`` is put in by whoever holds the file; with it come the size of the whole and the position."""

    snapshot: OffsetAndEpoch | None = None
    position: int = 0
    size_bytes: int = 0
    data: object = None
    data_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterChangeResponse:
    """The answer to AddVoter and RemoveVoter."""

    error: WireError = errors.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateVoterResponse(LeaderFacts):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportResponse:
    error: WireError = errors.NONE
    kraft_version_min: int = 0
    kraft_version_max: int = 0


Response: TypeAlias = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | VoterChangeResponse
    | UpdateVoterResponse
    | SupportResponse
)
