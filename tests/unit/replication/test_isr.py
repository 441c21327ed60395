"""The ISR machine: who is caught up, what the high watermark may be, what is proposed, and what answers do to it."""

from __future__ import annotations

import pytest

from barnabas.metadata.partition_image import UNASSIGNED_DIRECTORY, LeaderRecoveryState, PartitionImage
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.replication.isr import Answer, Change, InSyncReplicas, Proposal

LAG_MS = 1000
EPOCHS = {1: 11, 2: 12, 3: 13}


def image(
    isr: tuple[int, ...] = (1, 2, 3), *, epoch: int = 5, partition_epoch: int = 7, leader_recovery_state: int = 0
) -> PartitionImage:
    return PartitionImage(
        replicas=(1, 2, 3),
        directories=(UNASSIGNED_DIRECTORY,) * 3,
        isr=isr,
        leader=1,
        leader_epoch=epoch,
        partition_epoch=partition_epoch,
        leader_recovery_state=leader_recovery_state,
    )


class Machine(InSyncReplicas):
    """The machine of broker 1, whose log ends at 100."""

    __slots__ = ("end_offset", "epochs")

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3), **more: int) -> None:
        super().__init__(1, image(isr, **more), end_offset=100, now_ms=0)
        self.end_offset = 100
        self.epochs: dict[int, int] = dict(EPOCHS)

    def hear(self, broker_id: int, offset: int, *, now_ms: int = 0, broker_epoch: int | None = None) -> None:
        self.followers[broker_id].fetched(
            offset,
            log_start_offset=0,
            leader_end_offset=self.end_offset,
            broker_epoch=EPOCHS[broker_id] if broker_epoch is None else broker_epoch,
            now_ms=now_ms,
        )

    def watermark(self, *, now_ms: int = 0) -> int:
        return self.high_watermark(self.end_offset, now_ms=now_ms, lag_ms_max=LAG_MS, active_epoch=self.epochs.get)

    def expand(self, broker_id: int, *, high_watermark: int = 100, now_ms: int = 0) -> Proposal | None:
        return self.expansion(broker_id, high_watermark=high_watermark, now_ms=now_ms, active_epoch=self.epochs.get)

    def shrink(self, *, now_ms: int) -> Proposal | None:
        return self.shrinking(self.end_offset, now_ms=now_ms, lag_ms_max=LAG_MS)


# --- the high watermark -----------------------------------------------------------------------------------------------


def test_the_high_watermark_is_what_all_in_sync_replicas_have() -> None:
    machine = Machine()
    assert machine.watermark() == -1, "nobody has fetched in this epoch yet"
    machine.hear(2, 90)
    machine.hear(3, 80)
    assert machine.watermark() == 80
    machine.hear(3, 100)
    assert machine.watermark() == 90


def test_who_is_out_of_sync_and_far_behind_does_not_count() -> None:
    machine = Machine((1, 2))
    machine.hear(2, 100)
    machine.hear(3, 10)
    assert machine.watermark() == 100


def test_who_has_caught_up_and_may_join_counts_already() -> None:
    machine = Machine((1, 2))
    machine.hear(2, 100)
    machine.hear(3, 100)
    machine.end_offset = 110
    machine.hear(2, 110)
    assert machine.watermark() == 100
    del machine.epochs[3]  # fenced: it cannot join
    assert machine.watermark() == 110


def test_a_replica_on_its_way_into_the_isr_counts_until_the_controller_has_spoken() -> None:
    machine = Machine((1, 2))
    machine.hear(2, 100)
    machine.hear(3, 100)
    proposal = machine.expand(3)
    assert proposal is not None
    machine.end_offset = 200
    machine.hear(2, 200)
    del machine.epochs[3]
    assert machine.watermark(now_ms=10 * LAG_MS) == 100, "it may be in the ISR by now, so nothing goes past it"
    assert not machine.refused(proposal, errors.INELIGIBLE_REPLICA, now_ms=0)
    assert machine.watermark(now_ms=10 * LAG_MS) == 200


def test_a_replica_on_its_way_out_counts_until_the_controller_has_spoken() -> None:
    machine = Machine()
    machine.hear(2, 100)
    machine.hear(3, 50)
    proposal = machine.shrink(now_ms=LAG_MS + 1)
    assert proposal is not None
    assert machine.watermark(now_ms=LAG_MS + 1) == 50
    assert machine.answered(proposal, Answer(5, 8, (1, 2)))
    assert machine.watermark(now_ms=LAG_MS + 1) == 100


# --- leaving ----------------------------------------------------------------------------------------------------------


def test_a_follower_has_its_time_from_the_moment_the_leader_begins() -> None:
    machine = Machine()
    assert machine.shrink(now_ms=LAG_MS) is None
    proposal = machine.shrink(now_ms=LAG_MS + 1)
    assert proposal is not None
    assert (proposal.change, proposal.isr, proposal.broker_epochs) == (Change.SHRINK, (1,), (-1,))


def test_a_follower_at_the_end_of_the_log_is_in_sync_however_long_it_is_silent() -> None:
    machine = Machine()
    machine.hear(2, 100)
    machine.hear(3, 100)
    assert machine.shrink(now_ms=1_000_000) is None


def test_a_follower_that_is_always_one_fetch_behind_is_in_sync() -> None:
    machine = Machine()
    machine.hear(3, 100)
    for step in range(1, 20):
        now_ms = step * 900
        machine.end_offset = 100 + step * 10
        machine.hear(2, machine.end_offset - 10, now_ms=now_ms)  # what there was when it asked before
        machine.hear(3, machine.end_offset, now_ms=now_ms)
        assert machine.shrink(now_ms=now_ms) is None


def test_a_follower_that_fetches_but_never_catches_up_leaves() -> None:
    machine = Machine()
    machine.end_offset = 1000
    machine.hear(3, 1000)
    machine.hear(2, 10)
    machine.hear(2, 20, now_ms=LAG_MS)
    machine.hear(3, 1000, now_ms=LAG_MS + 1)
    proposal = machine.shrink(now_ms=LAG_MS + 1)
    assert proposal is not None
    assert proposal.isr == (1, 3)
    assert proposal.broker_epochs == (-1, 13)


def test_only_one_proposal_is_open_at_a_time() -> None:
    machine = Machine((1, 2))
    machine.hear(3, 100)
    assert machine.expand(3) is not None
    assert machine.shrink(now_ms=10 * LAG_MS) is None
    assert machine.expand(3) is None
    assert machine.recovery() is None


# --- joining ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "high_watermark", "broker_epoch", "registered", "joins"),
    [
        (100, 100, 13, 13, True),
        (99, 99, 13, 13, False),  # behind the start of this leader's epoch
        (100, 101, 13, 13, False),  # behind the high watermark
        (120, 110, 13, 13, True),
        (100, 100, 12, 13, False),  # it has restarted since it fetched
        (100, 100, 14, 13, False),  # we are behind with the metadata
        (100, 100, -1, 13, True),  # too old to say
        (100, 100, 13, None, False),  # fenced, or on its way out
    ],
)
def test_who_may_join(
    offset: int, high_watermark: int, broker_epoch: int, registered: int | None, *, joins: bool
) -> None:
    machine = Machine((1, 2))
    machine.end_offset = 200
    machine.epochs = {} if registered is None else {3: registered}
    machine.hear(3, offset, broker_epoch=broker_epoch)
    proposal = machine.expand(3, high_watermark=high_watermark)
    assert (proposal is not None) == joins
    if proposal is not None:
        assert (proposal.change, proposal.isr) == (Change.EXPAND, (1, 2, 3))
        assert proposal.broker_epochs == (-1, -1, broker_epoch), "2 has not fetched from this leader"


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "is_again", "is_open"),
    [
        (errors.OPERATION_NOT_ATTEMPTED, False, False),
        (errors.INELIGIBLE_REPLICA, False, False),
        (errors.UNKNOWN_TOPIC_OR_PARTITION, False, True),
        (errors.UNKNOWN_TOPIC_ID, False, True),
        (errors.FENCED_LEADER_EPOCH, False, True),
        (errors.INVALID_UPDATE_VERSION, False, True),
        (errors.INVALID_REQUEST, False, True),
        (errors.NEW_LEADER_ELECTED, False, True),
        (errors.NOT_CONTROLLER, True, True),
        (errors.UNKNOWN_SERVER_ERROR, True, True),
        (errors.REQUEST_TIMED_OUT, True, True),
    ],
)
def test_what_a_refusal_means(error: WireError, *, is_again: bool, is_open: bool) -> None:
    machine = Machine()
    proposal = machine.shrink(now_ms=LAG_MS + 1)
    assert proposal is not None
    assert machine.refused(proposal, error, now_ms=0) == is_again
    assert (machine.proposal is proposal) == is_open
    assert machine.isr == (1, 2, 3)


def test_a_follower_that_the_controller_does_not_want_is_proposed_again_after_a_while() -> None:
    machine = Machine((1, 2))
    machine.hear(3, 100)
    proposal = machine.expand(3)
    assert proposal is not None
    machine.refused(proposal, errors.INELIGIBLE_REPLICA, now_ms=50)
    assert machine.expand(3, now_ms=1049) is None
    assert machine.expand(3, now_ms=1050) is not None


def test_newer_metadata_end_a_proposal_and_its_late_answer_is_passed_over() -> None:
    machine = Machine()
    proposal = machine.shrink(now_ms=LAG_MS + 1)
    assert proposal is not None
    assert machine.apply(image((1, 3), partition_epoch=8), now_ms=LAG_MS + 1)
    assert machine.proposal is None
    assert not machine.answered(proposal, Answer(5, 8, (1,)))
    assert not machine.refused(proposal, errors.UNKNOWN_SERVER_ERROR, now_ms=0)
    assert machine.isr == (1, 3)


def test_metadata_older_than_an_answer_are_passed_over() -> None:
    machine = Machine()
    proposal = machine.shrink(now_ms=LAG_MS + 1)
    assert proposal is not None
    assert machine.answered(proposal, Answer(5, 9, (1,)))
    assert not machine.apply(image((1, 2), partition_epoch=8), now_ms=0)
    assert not machine.apply(image((1, 2), partition_epoch=9), now_ms=0)
    assert machine.isr == (1,)


@pytest.mark.parametrize("answer", [Answer(6, 9, (1,)), Answer(4, 9, (1,)), Answer(5, 6, (1,))])
def test_an_answer_of_another_epoch_changes_nothing(answer: Answer) -> None:
    machine = Machine()
    proposal = machine.shrink(now_ms=LAG_MS + 1)
    assert proposal is not None
    assert not machine.answered(proposal, answer)
    assert machine.isr == (1, 2, 3)


def test_an_answer_with_the_same_partition_epoch_closes_the_proposal() -> None:
    machine = Machine()
    proposal = machine.shrink(now_ms=LAG_MS + 1)
    assert proposal is not None
    assert machine.answered(proposal, Answer(5, 7, (1, 2, 3)))
    assert machine.proposal is None


def test_the_mark_of_an_unclean_election_is_taken_off() -> None:
    machine = Machine((1,), leader_recovery_state=LeaderRecoveryState.RECOVERING)
    proposal = machine.recovery()
    assert proposal is not None
    assert (proposal.change, proposal.isr) == (Change.RECOVER, (1,))
    assert machine.answered(proposal, Answer(5, 8, (1,)))
    assert machine.recovery() is None


def test_a_replica_that_is_assigned_later_is_known_from_then_on() -> None:
    machine = Machine()
    machine.hear(2, 100)
    wider = image(partition_epoch=8)._replace(replicas=(1, 2, 3, 4), directories=(UNASSIGNED_DIRECTORY,) * 4)
    assert machine.apply(wider, now_ms=0)
    assert sorted(machine.followers) == [2, 3, 4]
    assert machine.followers[2].end_offset == 100
    assert machine.shrink(now_ms=0) is None


def test_deleted_records_are_gone_when_all_living_replicas_have_let_them_go() -> None:
    machine = Machine()
    machine.hear(2, 100)
    machine.hear(3, 100)
    machine.followers[2].log_start_offset = 50
    assert machine.low_watermark(60, active_epoch=machine.epochs.get) == 0
    del machine.epochs[3]
    assert machine.low_watermark(60, active_epoch=machine.epochs.get) == 50
