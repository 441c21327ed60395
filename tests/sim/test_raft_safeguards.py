"""With one safeguard of the Raft machine off some seed must end badly, or the judges of the simulation are blind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from raft_chaos import World
from raft_simulation import Simulation

from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_BROKER
from barnabas.raft import messages
from barnabas.raft.events import QuorumState
from barnabas.raft.log_view import LogView, OffsetAndEpoch, Verdict
from barnabas.raft.machine import RaftMachine
from barnabas.raft.roles import Candidate, Leader, Prospective, Unattached
from barnabas.raft.voters import ReplicaKey

ABLATION_SEEDS_MAX = 1000


class VotesTwice(RaftMachine):
    def _may_grant(self, request: messages.Vote) -> bool:
        if not request.is_pre_vote and isinstance(self.role, Unattached | Prospective) and not self.has_leader:
            return self.log.is_up_to_date(request.log_end)
        return super()._may_grant(request)


class CommitsEarlierEpochs(RaftMachine):
    def _may_commit(self, role: Leader, offset: int) -> bool:
        return offset > 0


class CountsItselfUnsynced(RaftMachine):
    def _acknowledged_offset(self, role: Leader, key: ReplicaKey) -> int:
        return self.log.end_offset if key.id == self.local.id else super()._acknowledged_offset(role, key)


class HearsEveryAnswer(RaftMachine):
    def _is_expected(self, peer_id: int, number: int) -> bool:
        return True


class WinsWithoutMajority(RaftMachine):
    def _poll_candidate(self, role: Candidate) -> None:
        if len(role.election.granted) * 2 >= len(role.election.voter_ids) - 1:
            self._become_leader(role)
        else:
            super()._poll_candidate(role)


class HeedsNoEpoch(RaftMachine):
    """A response of an earlier epoch is taken for one of this epoch."""

    def _observe_response(self, response: messages.LeaderFacts) -> bool | None:
        if response.epoch < self.epoch and response.error is errors.NONE:
            return None
        return super()._observe_response(response)

    def _is_expected(self, peer_id: int, number: int) -> bool:
        return True


class ChangesManyVotersAtOnce(RaftMachine):
    def _change_error(self, role: Leader) -> tuple[WireError, str] | None:
        if role.change is not None and role.change.added is None:
            role.change = None
        return None if role.change is None else super()._change_error(role)


class FetchesUnsynced(LogView):
    @property
    def is_synced(self) -> bool:
        return True


class VotesForShortLogs(LogView):
    def is_up_to_date(self, other: OffsetAndEpoch) -> bool:
        return True


class ComparesOnlyLengths(LogView):
    def judge(self, position: OffsetAndEpoch) -> tuple[Verdict, OffsetAndEpoch]:
        verdict, end = super().judge(position)
        if verdict is Verdict.DIVERGING and position.offset <= self.end_offset and position.offset >= self.start_offset:
            return Verdict.VALID, position
        return verdict, end


def forgets_everything(state: QuorumState) -> QuorumState:
    return QuorumState()


def forgets_that_it_led(state: QuorumState) -> QuorumState:
    return state._replace(leader_id=NO_BROKER)


MACHINES = (
    VotesTwice,
    CommitsEarlierEpochs,
    CountsItselfUnsynced,
    HearsEveryAnswer,
    WinsWithoutMajority,
    HeedsNoEpoch,
)
# In which voters come and go all the time and nothing is lost: what goes wrong is theirs.
CHANGING = World(
    voter_count=3,
    loss=0.02,
    duplication=0.0,
    slow=0.02,
    partitions=True,
    crashes=False,
    pauses=True,
    snapshots=False,
    reconfigures=True,
)


def first_bad_seed(simulate: Callable[[int], Simulation]) -> int | None:
    for seed in range(ABLATION_SEEDS_MAX):
        try:
            simulate(seed).run()
        except AssertionError:
            return seed
    return None


@pytest.mark.parametrize("machine", MACHINES)
def test_a_safeguard_of_the_machine_is_missed(machine: type[RaftMachine]) -> None:
    assert first_bad_seed(lambda seed: Simulation(seed, machine)) is not None


def test_a_safeguard_of_changing_voters_is_missed() -> None:
    assert first_bad_seed(lambda seed: Simulation(seed, ChangesManyVotersAtOnce, world=CHANGING)) is not None


@pytest.mark.parametrize("view", [FetchesUnsynced, VotesForShortLogs, ComparesOnlyLengths])
def test_a_safeguard_of_the_log_is_missed(view: type[LogView]) -> None:
    assert first_bad_seed(lambda seed: Simulation(seed, view=view)) is not None


@pytest.mark.parametrize("remember", [forgets_everything, forgets_that_it_led])
def test_a_state_that_does_not_survive_is_missed(remember: Callable[[QuorumState], QuorumState]) -> None:
    assert first_bad_seed(lambda seed: Simulation(seed, remember=remember)) is not None
