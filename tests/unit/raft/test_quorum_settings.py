"""What the timings of the quorum change, one decision at a time."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.model.ids import Uuid
from barnabas.raft import events, messages
from barnabas.raft.events import QuorumState
from barnabas.raft.log_view import BOOTSTRAP_SNAPSHOT, LogView
from barnabas.raft.machine import RaftMachine
from barnabas.raft.metadata_log import _log_settings
from barnabas.raft.roles import Follower
from barnabas.raft.settings import RaftSettings
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

LONG_MS = 1_000_000


def voter(number: int) -> Voter:
    return Voter(ReplicaKey(number, Uuid(bytes([number]) * 16)), (Endpoint("CONTROLLER", f"host{number}", 9093),))


def follower(**values: Any) -> tuple[RaftMachine, events.Send]:
    """Replica 1 under the leader 2, and the fetch that it has sent; ``values`` by name with underscores for dots."""
    log = LogView(latest_snapshot=BOOTSTRAP_SNAPSHOT)
    log.voter_sets.add(-1, VoterSet.of(voter(1), voter(2), voter(3)))
    log.kraft_versions.add(-1, 1)
    patient = {"controller.quorum.fetch.timeout.ms": LONG_MS, "controller.quorum.election.timeout.ms": LONG_MS}
    settings = RaftSettings.of_values({**patient, **{name.replace("_", "."): value for name, value in values.items()}})
    machine = RaftMachine(local=voter(1), settings=settings, log=log, state=QuorumState(), seed=1, bootstrap_ids=())
    machine.step(events.Started(), 0)
    begin = messages.BeginQuorumEpoch(2, 5, voter(2).endpoints, voter(1).key)
    (send,) = [each for each in machine.step(events.Asked(1, begin), 0) if isinstance(each, events.Send)]
    return machine, send


@pytest.mark.parametrize("timeout_ms", [300, 7000])
def test_an_answer_is_waited_for_as_long_as_the_request_timeout_says(timeout_ms: int) -> None:
    machine, _ = follower(controller_quorum_request_timeout_ms=timeout_ms)
    assert machine.next_deadline_ms == timeout_ms


@pytest.mark.parametrize("pause_ms", [20, 900])
def test_who_did_not_answer_is_asked_again_after_the_retry_backoff(pause_ms: int) -> None:
    machine, send = follower(controller_quorum_retry_backoff_ms=pause_ms)
    effects = machine.step(events.Answered(send.peer_id, send.number, None), 10)
    assert not [each for each in effects if isinstance(each, events.Send) and each.peer_id == send.peer_id]
    assert machine.next_deadline_ms == 10 + pause_ms


@pytest.mark.parametrize("limit_ms", [1000, 64])
def test_after_a_resignation_the_worse_placed_hold_back_for_the_election_backoff(limit_ms: int) -> None:
    for successors, delay_ms in (((3, 1), limit_ms // 2), ((3,), limit_ms)):
        machine, _ = follower(controller_quorum_election_backoff_max_ms=limit_ms)
        keys = tuple(voter(number).key for number in successors)
        machine.step(events.Asked(2, messages.EndQuorumEpoch(2, 5, voter(2).endpoints, keys)), 100)
        role = machine.role
        assert isinstance(role, Follower)
        assert role.fetch_deadline_ms == 100 + delay_ms


def test_files_of_the_metadata_log_are_as_large_as_metadata_log_segment_bytes_says() -> None:
    settings = RaftSettings.of_values({"metadata.log.segment.bytes": 9 << 20})
    assert _log_settings(settings).segment_bytes == 9 << 20
