"""A replica outside the voter set: it must find its way back to a leader whatever it has heard."""

from __future__ import annotations

from machine_bench import Bench, voter

from barnabas.model import errors
from barnabas.model.ids import NO_BROKER
from barnabas.raft import events, messages
from barnabas.raft.events import QuorumState
from barnabas.raft.roles import Follower, Resigned, Unattached
from barnabas.raft.voters import VoterSet

OTHERS = VoterSet.of(voter(2), voter(3))


def follow(bench: Bench, leader_id: int, epoch: int) -> None:
    send = bench.sends().popitem()[1]
    redirect = messages.FetchResponse(
        error=errors.NOT_LEADER_OR_FOLLOWER, leader_id=leader_id, epoch=epoch, endpoints=voter(leader_id).endpoints
    )
    bench.answer(send, redirect)
    assert isinstance(bench.machine.role, Follower)


def test_a_silent_leader_is_asked_again_even_if_it_is_none_of_the_known_voters() -> None:
    bench = Bench(OTHERS)
    follow(bench, 4, 5)
    asked: list[int] = []
    for _ in range(40):
        bench.timeout()
        for send in bench.sends().values():
            asked.append(send.peer_id)
            if send.peer_id != 4:
                known = messages.FetchResponse(
                    error=errors.NOT_LEADER_OR_FOLLOWER, leader_id=4, epoch=5, endpoints=voter(4).endpoints
                )
                bench.answer(send, known)
    assert bench.now_ms > 2 * bench.machine.settings.fetch_timeout_ms
    assert asked.count(4) > 1


def test_who_is_behind_in_its_epoch_is_not_asked_again_without_a_rest() -> None:
    bench = Bench(OTHERS, state=QuorumState(9))
    for _ in range(2):  # each of the two
        (send,) = bench.of(events.Send)
        bench.answer(send, messages.FetchResponse(error=errors.UNKNOWN_LEADER_EPOCH, leader_id=2, epoch=5))
    assert not bench.of(events.Send)
    bench.timeout()
    assert bench.of(events.Send)


def test_an_epoch_without_a_leader_does_not_part_an_observer_from_its_leader() -> None:
    """Whoever ran in it may never win, and the leader goes on in the epoch before."""
    bench = Bench(OTHERS)
    follow(bench, 2, 5)
    bench.answer(bench.sends()[2], None)
    candidate = next(send for send in bench.sends().values() if send.peer_id == 3)
    bench.answer(candidate, messages.FetchResponse(error=errors.FENCED_LEADER_EPOCH, leader_id=NO_BROKER, epoch=6))
    assert bench.machine.epoch == 5
    assert isinstance(bench.machine.role, Follower)


def test_a_removed_leader_that_was_restarted_looks_for_the_next_one() -> None:
    bench = Bench(OTHERS, state=QuorumState(7, 1, voter(1).key), epochs=[(7, 0, 3)])
    assert isinstance(bench.machine.role, Resigned)
    for send in bench.sends().values():
        bench.answer(send, messages.EndQuorumEpochResponse(leader_id=1, epoch=7))
    while not isinstance(bench.machine.role, Unattached):
        bench.timeout()
    assert isinstance(bench.of(events.Send)[0].request, messages.Fetch)
