"""What the leader of a partition knows of its followers, and the changes of the ISR that follow from it.

A machine without clock or network: fetches, answers of the controller and the metadata come in, a high watermark and
proposals come out. :mod:`barnabas.replication.partition` holds one while it leads; the proposals are sent by
:mod:`barnabas.replication.isr_changes`. Leaders only ask: who is in sync is decided by the controller.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from barnabas.metadata.partition_image import LeaderRecoveryState, PartitionImage
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_OFFSET

NEVER_MS: Final = -(2**62)
NO_BROKER_EPOCH: Final = -1  # unknown, or a follower too old to say
INELIGIBLE_MS: Final = 1_000  # how long the controller's no to a follower is taken for an answer

# The epoch in which a broker is registered, if it is alive and not on its way out; otherwise None.
ActiveEpoch = Callable[[int], int | None]


class Presence(Protocol):
    """The session on which a follower fetches: its requests need not mention a partition that has no news."""

    used_ms: int  # when it last asked
    previous_ms: int  # and the time before


class Change(enum.Enum):
    EXPAND = "expand"
    SHRINK = "shrink"
    RECOVER = "recover"  # the same ISR, but the mark of an unclean election comes off


class Proposal(NamedTuple):
    """An ISR that the controller is asked for, and the epochs in which it was thought of."""

    change: Change
    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class Answer(NamedTuple):
    """What the controller made of a proposal."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


# After these the request was certainly not carried out, so the committed ISR is what it was.
NOT_DONE: Final = (errors.OPERATION_NOT_ATTEMPTED, errors.INELIGIBLE_REPLICA)
# After these only the metadata can tell where we stand: the proposal stays open until they do.
WAIT_FOR_METADATA: Final = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.FENCED_LEADER_EPOCH,
    errors.INVALID_UPDATE_VERSION,
    errors.INVALID_REQUEST,
    errors.NEW_LEADER_ELECTED,
)


class Follower:
    """One follower, as its fetches show it."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "fetched_ms",
        "id",
        "leader_end_offset",
        "log_start_offset",
        "presence",
    )

    def __init__(self, broker_id: int, *, caught_up_ms: int) -> None:
        self.id = broker_id
        self.presence: Presence | None = None
        self.end_offset = NO_OFFSET
        self.log_start_offset = NO_OFFSET
        self.leader_end_offset = NO_OFFSET  # where the leader's log ended when it last fetched
        self.fetched_ms = NEVER_MS
        self.caught_up_ms = caught_up_ms  # when it last had all that the leader had
        self.broker_epoch: int | None = None  # None until it has fetched from this leader

    def fetched(
        self, offset: int, *, log_start_offset: int, leader_end_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """It asks from here on, so it has all that lies below."""
        if self.presence is not None:
            self.fetched_ms = max(self.fetched_ms, self.presence.previous_ms)
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:
            # It has what there was when it last asked: under a steady load it is as far behind as one fetch takes.
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.log_start_offset = log_start_offset
        self.leader_end_offset = max(leader_end_offset, self.leader_end_offset)
        self.fetched_ms = now_ms
        self.broker_epoch = broker_epoch

    @property
    def seen_caught_up_ms(self) -> int:
        """As ``caught_up_ms``; while it has all that it was told of, each request of its session says so again."""
        if self.presence is not None and self.end_offset >= self.leader_end_offset:
            return max(self.caught_up_ms, self.presence.used_ms)
        return self.caught_up_ms

    @property
    def seen_ms(self) -> int:
        """When it last asked for anything, be it only on its session."""
        return self.fetched_ms if self.presence is None else max(self.fetched_ms, self.presence.used_ms)

    def leave(self, presence: Presence | None) -> None:
        """It does not fetch the partition on this session any longer."""
        if self.presence is presence:
            self.caught_up_ms = self.seen_caught_up_ms
            self.presence = None

    def is_caught_up(self, leader_end_offset: int, *, now_ms: int, lag_ms_max: int) -> bool:
        return self.end_offset == leader_end_offset or now_ms - self.seen_caught_up_ms <= lag_ms_max


class InSyncReplicas:
    """The ISR of one partition in one leader epoch: committed, and what it may have become meanwhile."""

    __slots__ = (
        "_broker_id",
        "_epoch_start",
        "_ineligible_until_ms",
        "_maximal",
        "followers",
        "is_recovering",
        "isr",
        "leader_epoch",
        "partition_epoch",
        "proposal",
    )

    def __init__(self, broker_id: int, image: PartitionImage, *, end_offset: int, now_ms: int) -> None:
        assert image.leader == broker_id
        self._broker_id = broker_id
        self._epoch_start = end_offset
        self._ineligible_until_ms = NEVER_MS
        self.leader_epoch = image.leader_epoch
        self.proposal: Proposal | None = None
        self.followers: dict[int, Follower] = {}
        self._take_over(image, now_ms=now_ms)

    def _take_over(self, image: PartitionImage, *, now_ms: int) -> None:
        self.isr = image.isr
        self.partition_epoch = image.partition_epoch
        self.is_recovering = image.leader_recovery_state == LeaderRecoveryState.RECOVERING
        self.proposal = None
        self._maximal = frozenset(image.isr)
        known = self.followers
        # In the order of the assignment. Who is new here and in sync gets its full time to show up.
        self.followers = {
            replica: known.get(replica) or Follower(replica, caught_up_ms=now_ms if replica in image.isr else NEVER_MS)
            for replica in image.replicas
            if replica != self._broker_id
        }

    def apply(self, image: PartitionImage, *, now_ms: int) -> bool:
        """The metadata of the same leader epoch; older ones than the controller has answered with are passed over."""
        assert image.leader_epoch == self.leader_epoch
        if image.partition_epoch <= self.partition_epoch:
            return False
        self._take_over(image, now_ms=now_ms)
        return True

    @property
    def is_alone(self) -> bool:
        """Nobody else counts, nor is about to: an append moves the high watermark by itself."""
        return not self.followers

    # --- the high watermark ---------------------------------------------------------------------------------------

    def high_watermark(self, end_offset: int, *, now_ms: int, lag_ms_max: int, active_epoch: ActiveEpoch) -> int:
        """What every replica has that is in sync, may have become so, or is about to ask to."""
        offset = end_offset
        for follower in self.followers.values():
            if follower.end_offset < offset and (
                follower.id in self._maximal
                or (
                    follower.is_caught_up(end_offset, now_ms=now_ms, lag_ms_max=lag_ms_max)
                    and self._is_eligible(follower, active_epoch)
                )
            ):
                offset = follower.end_offset
        return offset

    def low_watermark(self, log_start_offset: int, *, active_epoch: ActiveEpoch) -> int:
        """Below this no replica that is alive keeps anything."""
        alive = [follower for follower in self.followers.values() if active_epoch(follower.id) is not None]
        return min([log_start_offset, *(follower.log_start_offset for follower in alive)])

    # --- changes --------------------------------------------------------------------------------------------------

    def expansion(
        self, broker_id: int, *, high_watermark: int, now_ms: int, active_epoch: ActiveEpoch
    ) -> Proposal | None:
        """Ask for a follower that has reached the high watermark and the start of this epoch."""
        follower = self.followers[broker_id]
        if (
            self.proposal is not None
            or broker_id in self.isr
            or now_ms < self._ineligible_until_ms
            or follower.end_offset < max(high_watermark, self._epoch_start)
            or not self._is_eligible(follower, active_epoch)
        ):
            return None
        # Until the answer is here it may be in the ISR or not, so nothing is committed without it.
        self._maximal = frozenset((*self.isr, broker_id))
        return self._propose(Change.EXPAND, (*self.isr, broker_id))

    def shrinking(self, end_offset: int, *, now_ms: int, lag_ms_max: int) -> Proposal | None:
        """Ask for an ISR without those that have not caught up for too long. They count until the answer is here."""
        if self.proposal is not None:
            return None
        slow = {
            replica
            for replica in self.isr
            if (follower := self.followers.get(replica)) is not None
            and not follower.is_caught_up(end_offset, now_ms=now_ms, lag_ms_max=lag_ms_max)
        }
        if not slow:
            return None
        return self._propose(Change.SHRINK, tuple(replica for replica in self.isr if replica not in slow))

    def recovery(self) -> Proposal | None:
        """After an unclean election: this log is whole, however much was lost, and others may catch up with it."""
        if self.proposal is not None or not self.is_recovering:
            return None
        return self._propose(Change.RECOVER, self.isr)

    def _propose(self, change: Change, isr: tuple[int, ...]) -> Proposal:
        self.proposal = Proposal(
            change,
            isr,
            # Of who has not fetched yet the epoch is unknown; had it restarted, the controller would know.
            tuple(
                NO_BROKER_EPOCH
                if (follower := self.followers.get(replica)) is None or follower.broker_epoch is None
                else follower.broker_epoch
                for replica in isr
            ),
            self.leader_epoch,
            self.partition_epoch,
        )
        return self.proposal

    def answered(self, proposal: Proposal, answer: Answer) -> bool:
        """Take over what the controller has committed; False if the metadata have overtaken it."""
        if self.proposal is not proposal or answer.leader_epoch != self.leader_epoch:
            return False
        if answer.partition_epoch < self.partition_epoch:
            return False
        # With an epoch that has not moved the controller says that this is how it was already.
        self.proposal = None
        self.isr = answer.isr
        self._maximal = frozenset(answer.isr)
        self.partition_epoch = answer.partition_epoch
        self.is_recovering = False
        return True

    def refused(self, proposal: Proposal, error: WireError, *, now_ms: int) -> bool:
        """Whether to ask the same again."""
        if self.proposal is not proposal:
            return False
        if error in NOT_DONE:
            # Its every fetch would make us ask again, until we know of it what the controller knows.
            self._ineligible_until_ms = now_ms + INELIGIBLE_MS
            self.proposal = None
            self._maximal = frozenset(self.isr)
            return False
        return error not in WAIT_FOR_METADATA

    def _is_eligible(self, follower: Follower, active_epoch: ActiveEpoch) -> bool:
        """A broker that restarted since it fetched may have lost its tail: what it said before does not count."""
        registered = active_epoch(follower.id)
        if registered is None or follower.broker_epoch is None:
            return False
        return follower.broker_epoch in (NO_BROKER_EPOCH, registered)
