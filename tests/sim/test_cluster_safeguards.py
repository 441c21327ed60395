"""With one safeguard of a cluster off some seed must end badly, or whoever watches the whole clusters is blind.

What the quorum's machine alone would miss is in ``test_raft_safeguards``; these are whole nodes, and what is shown is
that their watcher sees it at the event that does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import combinations

import pytest
from cluster_story import tell
from test_cluster import Writing

from barnabas.broker.handlers import list_offsets
from barnabas.metadata.image import PartitionImage
from barnabas.model.errors import BarnabasError
from barnabas.raft import driver, metadata_log
from barnabas.raft.log_view import LogView, OffsetAndEpoch, Verdict
from barnabas.raft.machine import RaftMachine
from barnabas.raft.roles import Candidate, Leader
from barnabas.raft.voters import ReplicaKey
from barnabas.replication.partition import Partition
from barnabas.testing.invariants import BrokenInvariant

SEEDS_MAX = 20
QUARRELS = 3


class Quarrel(Writing):
    """Whoever leads the quorum is cut off from the others, and both sides go on writing metadata, if they may."""

    async def trouble(self) -> None:
        for _ in range(QUARRELS):
            await asyncio.sleep(self.chance.uniform(1, 3))
            leaders = [number for number, node in self.cluster.nodes.items() if node.services.raft.is_leader]
            for number in leaders[:1]:
                self.faults.append(f"{self.loop.time():.3f} cut {number}")
                self.cluster.cut_off(number)
            await asyncio.sleep(6)
            self.cluster.heal()


class Lagging(Writing):
    """All links are slow, so that followers know of a high watermark long after clients do; then a leader dies."""

    async def trouble(self) -> None:
        numbers = sorted(self.cluster.hosts)
        for number, other in combinations(numbers, 2):
            self.cluster.slow(number, other, delay_ms=300)
        for number in self.chance.sample(numbers, len(numbers)):
            await asyncio.sleep(self.chance.uniform(3, 5))
            self.faults.append(f"{self.loop.time():.3f} kill {number}")
            self.cluster.kill(number)
            await asyncio.sleep(8)
            self.cluster.begin(number)
            await asyncio.sleep(8)


def begins_to_lead_without_a_high_watermark(partition: Partition, image: PartitionImage) -> None:
    if image.leader == partition.broker_id and not partition.is_leader:
        partition.log.high_watermark = partition.log.log_start_offset
    APPLY(partition, image)


def commits_what_it_alone_has(partition: Partition) -> None:
    partition._commit(partition.log.end_offset)


APPLY = Partition.apply


class WinsWithItsOwnVote(RaftMachine):
    def _poll_candidate(self, role: Candidate) -> None:
        self._become_leader(role)


class CommitsWhatItAloneHas(RaftMachine):
    def _acknowledged_offset(self, role: Leader, key: ReplicaKey) -> int:
        return self.log.end_offset


class ComparesOnlyLengths(LogView):
    def judge(self, position: OffsetAndEpoch) -> tuple[Verdict, OffsetAndEpoch]:
        verdict, end = super().judge(position)
        if verdict is Verdict.DIVERGING and self.start_offset <= position.offset <= self.end_offset:
            return Verdict.VALID, position
        return verdict, end


def first_broken(make: Callable[[int], Writing]) -> str:
    """What was seen in the first seed in which anything was."""
    for seed in range(SEEDS_MAX):
        try:
            tell(seed, lambda seed=seed: make(seed), __file__)  # type: ignore[misc]
        except BrokenInvariant as error:
            return str(error)
        except (AssertionError, BarnabasError, RuntimeError, ExceptionGroup):
            continue  # it went wrong in a way that only its end shows
    return "nothing"


def test_a_leader_that_begins_without_a_high_watermark_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "apply", begins_to_lead_without_a_high_watermark)
    assert "went back from" in first_broken(Lagging)


def test_an_end_that_a_new_leader_tells_before_it_knows_it_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_offsets._End, "known", lambda end: end.offset)
    assert "a client was told" in first_broken(Lagging)


def test_a_leader_that_waits_for_nobody_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "_advance", commits_what_it_alone_has)
    assert "was committed" in first_broken(Lagging)


def test_a_controller_elected_by_itself_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "RaftMachine", WinsWithItsOwnVote)
    assert "both lead __cluster_metadata-0" in first_broken(Quarrel)


def test_metadata_that_a_controller_commits_alone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "RaftMachine", CommitsWhatItAloneHas)
    seen = first_broken(Quarrel)
    assert "__cluster_metadata-0" in seen
    assert "was committed" in seen


def test_metadata_logs_that_do_not_match_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "LogView", ComparesOnlyLengths)
    seen = first_broken(Quarrel)
    assert "__cluster_metadata-0" in seen
    assert "was written" in seen


def test_what_a_power_cut_of_all_takes_without_a_flush_is_seen() -> None:
    assert "was committed" in first_broken(lambda seed: Writing(seed, loses_power=True, loses_all=True))
