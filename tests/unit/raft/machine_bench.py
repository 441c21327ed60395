"""A Raft machine on the bench: it is told events and asked for its effects. Shared by the tests of the machine."""

from __future__ import annotations

from typing import Any, TypeVar

from barnabas.model import errors
from barnabas.model.ids import Uuid
from barnabas.raft import events, messages
from barnabas.raft.events import QuorumState
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, BatchFacts, LogView, OffsetAndEpoch
from barnabas.raft.machine import RaftMachine
from barnabas.raft.roles import NEVER_MS, Candidate, Follower, Leader, Prospective
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

SETTINGS = RaftSettings(auto_join_enable=False)
E = TypeVar("E")


def voter(number: int) -> Voter:
    return Voter(ReplicaKey(number, Uuid(bytes([number]) * 16)), (Endpoint("CONTROLLER", f"host{number}", 9093),))


VOTERS = VoterSet.of(voter(1), voter(2), voter(3))


class Bench:
    """Replica 1 among the voters given, and what it last ordered."""

    def __init__(
        self,
        voters: VoterSet = VOTERS,
        state: QuorumState | None = None,
        epochs: Any = (),
        log: LogView | None = None,
    ) -> None:
        """``log`` replaces one of the voters and epochs given."""
        if log is None:
            log = LogView(latest_snapshot=BOOTSTRAP_SNAPSHOT)
            log.voter_sets.add(-1, voters)
            log.kraft_versions.add(-1, 1)
            for epoch, base_offset, last_offset in epochs:
                log.append(BatchFacts(base_offset, last_offset, epoch))
            log.synced_offset = log.end_offset
        self.machine = RaftMachine(
            local=voter(1), settings=SETTINGS, log=log, state=state or QuorumState(), seed=1, bootstrap_ids=()
        )
        self.now_ms = 0
        self.effects: list[events.Effect] = []
        self.step(events.Started())

    def step(self, event: events.Event, after_ms: int = 0) -> list[events.Effect]:
        self.now_ms += after_ms
        self.effects = self.machine.step(event, self.now_ms)
        return self.effects

    def of(self, kind: type[E]) -> list[E]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def ask(self, request: messages.Request) -> Any:
        self.step(events.Asked(99, request))
        (reply,) = [reply for reply in self.of(events.Reply) if reply.request_id == 99]
        return reply.response

    def answer(self, send: events.Send, response: messages.Response | None) -> None:
        self.step(events.Answered(send.peer_id, send.number, response))

    def sends(self) -> dict[int, events.Send]:
        return {send.peer_id: send for send in self.of(events.Send)}

    def sync(self) -> None:
        sync = self.of(events.Sync)[-1]
        self.step(events.LogSynced(sync.end_offset, sync.generation))

    def timeout(self) -> None:
        assert self.machine.next_deadline_ms < NEVER_MS, f"{self.machine.role} waits for nothing"
        self.step(events.TimerFired(), after_ms=self.machine.next_deadline_ms - self.now_ms)

    def elect(self) -> None:
        """Win the pre-vote and the vote with the help of replica 2."""
        while not isinstance(self.machine.role, Prospective):
            self.timeout()
        epoch = self.machine.epoch
        self.answer(self.sends()[2], messages.VoteResponse(epoch=epoch, is_granted=True))
        assert isinstance(self.machine.role, Candidate)
        self.answer(self.sends()[2], messages.VoteResponse(epoch=epoch + 1, is_granted=True))
        assert isinstance(self.machine.role, Leader)

    def follow(self, leader_id: int = 2, epoch: int = 5) -> None:
        request = messages.BeginQuorumEpoch(leader_id, epoch, voter(leader_id).endpoints, voter(1).key)
        assert self.ask(request).error is errors.NONE
        assert isinstance(self.machine.role, Follower)

    def fetch(self, number: int, offset: int, epoch: int, wait_ms: int = 0) -> Any:
        key = voter(number).key
        return self.ask(messages.Fetch(key, self.machine.epoch, OffsetAndEpoch(offset, epoch), wait_ms))


def vote(number: int, epoch: int, end: tuple[int, int] = (0, 0), *, is_pre_vote: bool = False) -> messages.Vote:
    return messages.Vote(voter(number).key, voter(1).key, epoch, OffsetAndEpoch(*end), is_pre_vote)


def bench_fetch(bench: Bench) -> events.Send:
    """The fetch that is under way to replica 2."""
    number = bench.machine._connections[2].number
    assert number is not None
    return events.Send(2, number, messages.AskSupport())
