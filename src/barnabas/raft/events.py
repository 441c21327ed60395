"""What can happen to the Raft machine, and what it may ask for: events in, effects out, all of them values.

Effects are performed in the order of the list; nothing after a :class:`Persist` may become visible before the state is
on the disk. Who performs them is ``driver.py`` or the simulation; who decides is ``machine.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from barnabas.model.ids import NO_BROKER
from barnabas.raft.log_view import OffsetAndEpoch
from barnabas.raft.messages import Request, Response
from barnabas.raft.voters import Endpoint, ReplicaKey, VoterSet


class QuorumState(NamedTuple):
    """What must survive a crash besides the log: a replica that forgot its vote could vote twice."""

    epoch: int = 0
    leader_id: int = NO_BROKER
    voted: ReplicaKey | None = None


# Events ----------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    pass


@dataclass(frozen=True, slots=True)
class TimerFired:
    pass


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of another replica or of an administrator; exactly one Reply with the same id follows, soon or late."""

    request_id: int
    request: Request


@dataclass(frozen=True, slots=True)
class Answered:
    """The response to a Send, or None when it failed; ``is_refused`` when nothing listens where the peer was."""

    peer_id: int
    number: int
    response: Response | None
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class Proposed:
    """Records for the log, in one batch. The machine never looks at the payload."""

    epoch: int
    record_count: int
    payload: object


@dataclass(frozen=True, slots=True)
class LogSynced:
    """All that was written before the Sync with these numbers is durable."""

    end_offset: int
    generation: int


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """A snapshot of our own is complete and durable."""

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """The records below a snapshot were deleted."""

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class SnapshotInstalled:
    """A downloaded snapshot is durable and the log restarts after it."""

    snapshot: OffsetAndEpoch
    voters: VoterSet | None
    kraft_version: int


@dataclass(frozen=True, slots=True)
class InstallFailed:
    """The download was not a snapshot; it is fetched again."""

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class ResignAsked:
    epoch: int


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    pass


Event: TypeAlias = (
    Started
    | TimerFired
    | Asked
    | Answered
    | Proposed
    | LogSynced
    | SnapshotTaken
    | LogStartMoved
    | SnapshotInstalled
    | InstallFailed
    | ResignAsked
    | ShutdownAsked
)


# Effects ----------------------------------------


@dataclass(frozen=True, slots=True)
class Persist:
    state: QuorumState


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """The payload of the first batch of an epoch; with it the voters, when the log does not hold them as they are."""

    leader_id: int
    voters: tuple[ReplicaKey, ...]
    granting_voters: tuple[ReplicaKey, ...]
    kraft_version: int | None = None
    voter_set: VoterSet | None = None


@dataclass(frozen=True, slots=True)
class VotersChange:
    """The payload of a batch that holds one Voters record."""

    voter_set: VoterSet


@dataclass(frozen=True, slots=True)
class Append:
    """Write one batch of our own. ``payload`` is a LeaderChange, a VotersChange or what was proposed."""

    base_offset: int
    epoch: int
    record_count: int
    payload: object


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """Write the leader's batches as they came."""

    base_offset: int
    end_offset: int
    records: object


@dataclass(frozen=True, slots=True)
class Truncate:
    end_offset: int


@dataclass(frozen=True, slots=True)
class Sync:
    """Make the log durable, then say LogSynced with these numbers. A later Sync covers an earlier one."""

    end_offset: int
    generation: int


@dataclass(frozen=True, slots=True)
class Send:
    peer_id: int
    number: int
    request: Request


@dataclass(frozen=True, slots=True)
class Reply:
    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class Committed:
    high_watermark: int


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """``epoch_start_offset`` is set where we lead: our own first record stands there."""

    leader_id: int
    epoch: int
    epoch_start_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Learn:
    """Where a node can be reached from now on."""

    node_id: int
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class BeginSnapshot:
    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class AppendSnapshot:
    data: object


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """Make the download durable, restart the log after it, then say SnapshotInstalled."""

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something a sound quorum never does; an operator must hear of it."""

    text: str


# Effects that are performed at once; those after a Persist wait for it.
ImmediateEffect: TypeAlias = (
    Append
    | AppendFetched
    | Truncate
    | Sync
    | Send
    | Reply
    | Committed
    | LeaderChanged
    | Learn
    | BeginSnapshot
    | AppendSnapshot
    | InstallSnapshot
    | Alarm
)
Effect: TypeAlias = Persist | ImmediateEffect
