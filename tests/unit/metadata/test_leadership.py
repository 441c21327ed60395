"""Who leads next, and what a change of a partition looks like in the log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.metadata.leadership import NOBODY, Candidates, Elected, Election, elect
from barnabas.metadata.partition_change import PartitionChange, completed_reassignment
from barnabas.metadata.partition_image import LeaderRecoveryState, PartitionImage, TopicIdPartition
from barnabas.metadata.records import PartitionChangeRecord
from barnabas.model.ids import Uuid

ID = Uuid(bytes(15) + b"\x09")
NEW_DIRECTORY = Uuid(bytes(15) + b"\xee")


def directory(broker: int) -> Uuid:
    return Uuid(bytes(15) + bytes((100 + broker,)))


def elected(
    candidates: Candidates, *, leader: int = 1, live: Sequence[int], election: Election = Election.ONLINE
) -> Elected:
    return elect(leader, candidates, election, is_acceptable=lambda broker: broker in live)


@pytest.mark.parametrize(
    ("candidates", "live", "election", "expected"),
    [
        # A live leader stays, even if it is not the preferred one.
        (Candidates([2, 1, 3], [1, 2, 3]), [1, 2, 3], Election.ONLINE, Elected(1)),
        (Candidates([2, 1, 3], [1, 2, 3]), [1, 2, 3], Election.UNCLEAN, Elected(1)),
        (Candidates([2, 1, 3], [1, 2, 3]), [1, 2, 3], Election.PREFERRED, Elected(2)),
        (Candidates([2, 1, 3], [1, 3]), [1, 2, 3], Election.PREFERRED, Elected(1)),
        # Then the ISR in the order of the replicas.
        (Candidates([1, 3, 2], [2, 3]), [2, 3], Election.ONLINE, Elected(3)),
        (Candidates([1, 3, 2], [2, 3]), [2], Election.ONLINE, Elected(2)),
        # Eligible leader replicas only when the ISR is empty.
        (Candidates([1, 2, 3], [1], [3]), [3], Election.ONLINE, NOBODY),
        (Candidates([1, 2, 3], [], [3]), [2, 3], Election.ONLINE, Elected(3)),
        (Candidates([1, 2, 3], [], [3]), [2], Election.ONLINE, NOBODY),
        # The last known leader only when both are empty, and as the unclean election it is.
        (Candidates([1, 2], [], [], [1]), [1, 2], Election.ONLINE, Elected(1, True)),
        (Candidates([1, 2], [], [], [1]), [2], Election.ONLINE, NOBODY),
        (Candidates([1, 2], [], [2], [1]), [1], Election.ONLINE, NOBODY),
        (Candidates([1, 2], [], [], [1, 2]), [1, 2], Election.ONLINE, NOBODY),
        (Candidates([1, 2], [], [], [1], has_elr=False), [1, 2], Election.ONLINE, NOBODY),
        # Anybody, if the price is accepted.
        (Candidates([1, 2, 3], [1]), [3, 2], Election.UNCLEAN, Elected(2, True)),
        (Candidates([1, 2, 3], [1]), [], Election.UNCLEAN, NOBODY),
        (Candidates([1, 2, 3], [1]), [2, 3], Election.PREFERRED, NOBODY),
    ],
)
def test_the_order_of_an_election(
    candidates: Candidates, live: list[int], election: Election, expected: Elected
) -> None:
    assert elected(candidates, live=live, election=election) == expected


def partition(
    replicas: tuple[int, ...] = (1, 2, 3), isr: tuple[int, ...] = (1, 2, 3), **more: object
) -> PartitionImage:
    image = PartitionImage(
        replicas=replicas, directories=tuple(directory(replica) for replica in replicas), isr=isr, leader=1
    )
    return image._replace(**more)  # type: ignore[arg-type]


def change(
    old: PartitionImage, *, live: Sequence[int] = (1, 2, 3, 4), min_isr: int = 2, has_elr: bool = True, **more: object
) -> PartitionChangeRecord | None:
    return PartitionChange(
        key=TopicIdPartition(ID, 0),
        partition=old,
        is_acceptable=lambda broker: broker in live,
        default_directory=lambda broker: NEW_DIRECTORY,
        min_isr=min_isr,
        has_elr=has_elr,
        **more,  # type: ignore[arg-type]
    ).record()


def record(**values: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=ID, **values)


def test_nothing_to_change_is_no_record() -> None:
    assert change(partition()) is None
    assert change(partition(), isr=(1, 2, 3)) is None


def test_a_smaller_isr_keeps_the_leader_and_its_epoch() -> None:
    assert change(partition(), isr=(1, 3)) == record(isr=[1, 3])


def test_who_leaves_an_isr_that_is_too_small_stays_eligible() -> None:
    first = change(partition(isr=(1, 2)), isr=(1,))
    assert first == record(isr=[1], eligible_leader_replicas=[2])
    # A broker that crashed may have lost what it acknowledged.
    crashed = change(partition(isr=(1, 2)), isr=(1,), unclean_shutdowns=frozenset((2,)))
    assert crashed == record(isr=[1])
    # An ISR that is large enough again needs nobody else.
    again = change(partition(isr=(1,), elr=(2,)), isr=(1, 3))
    assert again == record(isr=[1, 3], eligible_leader_replicas=[])


def test_the_last_one_leaves_a_name_behind() -> None:
    gone = change(partition(isr=(1,), elr=(2,)), isr=(), live=())
    assert gone == record(isr=[], leader=-1, eligible_leader_replicas=[1, 2], last_known_elr=[1])
    # It comes back and leads; the others are eligible still.
    old = partition(isr=(), elr=(1, 2), last_known_elr=(1,), leader=-1)
    back = change(old, live=(1,))
    assert back == record(isr=[1], leader=1, eligible_leader_replicas=[2], last_known_elr=[])


def test_without_eligible_leaders_the_last_one_stays_in_the_isr() -> None:
    gone = change(partition(isr=(1,)), isr=(), live=(), has_elr=False)
    assert gone == record(leader=-1)


def test_the_last_known_leader_returns_uncleanly() -> None:
    old = partition(isr=(), elr=(), last_known_elr=(1,), leader=-1)
    assert change(old, live=(2, 3)) is None
    assert change(old, live=(1,)) == record(
        isr=[1], leader=1, leader_recovery_state=LeaderRecoveryState.RECOVERING, last_known_elr=[]
    )


def test_an_unclean_leader_is_alone_and_recovering() -> None:
    unclean = change(partition(isr=(1,)), live=(3,), election=Election.UNCLEAN)
    assert unclean == record(isr=[3], leader=3, leader_recovery_state=LeaderRecoveryState.RECOVERING)
    recovered = change(
        partition(isr=(1,), leader_recovery_state=LeaderRecoveryState.RECOVERING),
        leader_recovery_state=LeaderRecoveryState.RECOVERED,
    )
    assert recovered == record(leader_recovery_state=LeaderRecoveryState.RECOVERED)


def test_a_reassignment_ends_when_all_that_stay_are_in_sync() -> None:
    old = partition((1, 2, 4), (1, 2), adding=(4,), removing=(2,))
    assert change(old) is None
    done = change(old, isr=(1, 2, 4))
    # Two replicas are left, with a new epoch against the one that was dropped.
    assert done == record(
        isr=[1, 4],
        replicas=[1, 4],
        directories=[directory(1), directory(4)],
        adding_replicas=[],
        removing_replicas=[],
        leader=1,
    )
    merged = old.merged(done)
    assert merged.leader_epoch == old.leader_epoch + 1
    assert not merged.is_reassigning


def test_a_leader_that_is_removed_hands_over() -> None:
    old = partition((1, 2), (1, 2), removing=(1,))
    done = change(old)
    assert done is not None
    assert (done.leader, done.isr, done.replicas) == (2, [2], [2])


def test_a_new_replica_goes_where_its_broker_puts_it() -> None:
    started = change(partition((1, 2), (1, 2)), replicas=(1, 2, 4), adding=(4,))
    assert started == record(
        replicas=[1, 2, 4], adding_replicas=[4], directories=[directory(1), directory(2), NEW_DIRECTORY]
    )
    assert change(partition((1,), (1,)), min_isr=1, directories={1: NEW_DIRECTORY}) == record(
        directories=[NEW_DIRECTORY]
    )


def test_a_reassignment_that_only_reorders_is_done_at_once() -> None:
    assert completed_reassignment([1], [2, 1], [], []) == ([1], [2, 1], [], [])
    assert completed_reassignment([1, 2], [2, 1], [2], []) == ([1, 2], [2, 1], [], [])
    assert completed_reassignment([3], [1, 3], [], [3]) == ([3], [1, 3], [], [3])
