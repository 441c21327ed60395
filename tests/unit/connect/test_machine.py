"""The leader's decisions: what the config topic wants against what the driver says, as commands and statuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.connect.worker.machine import Effect, Facts, Machine, Store, Tell
from barnabas.connect.worker.store import (
    ConfigState,
    OffsetState,
    Status,
    StatusState,
    TargetState,
    connector_record,
    decode,
    generation_record,
    offset_record,
    status_record,
    target_record,
    task_records,
    topic_record,
)

CONFIG = {"connector.class": "x", "name": "a"}


class Leader:
    """A machine with the state that its records add up to."""

    def __init__(self) -> None:
        self.config = ConfigState()
        self.status = StatusState()
        self.machine = Machine("w:1")
        self.told: list[dict[str, Any]] = []
        self.now = 0.0
        self._offset = 0

    def write(self, *records: tuple[bytes, bytes | None]) -> None:
        for key, value in records:
            self.config.apply(key.decode(), decode(value), self._offset)
            self._offset += 1

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Tell):
                self.told.append(effect.command)
            elif isinstance(effect, Store) and effect.topic == "status":
                for key, value in effect.records:
                    self.status.apply(key.decode(), decode(value))
            else:
                self.write(*effect.records)

    def reconcile(self) -> list[str]:
        facts = {}
        for name in self.config.names():
            connector = self.config.get(name)
            assert connector is not None
            facts[name] = Facts(connector.revision, "1", int(connector.config.get("tasks.max", "1")))
        self.told.clear()
        self.take(self.machine.reconcile(self.config, facts, self.now))
        return [command["op"] for command in self.told]

    def event(self, kind: str, **more: Any) -> None:
        name = more.pop("name", "a")
        epoch = more.pop("epoch", self.machine._epoch)
        self.take(self.machine.on_event({"event": kind, "name": name, "epoch": epoch, **more}, self.now))

    def states(self, name: str = "a") -> str:
        shown = self.status.shown(name, "source")
        if shown is None:
            return "none"
        return " ".join([shown["connector"]["state"], *(task["state"] for task in shown["tasks"])])


@pytest.fixture
def leader() -> Leader:
    made = Leader()
    made.write(connector_record("a", CONFIG))
    return made


def test_a_new_connector_is_started_and_then_left_alone(leader: Leader) -> None:
    assert leader.reconcile() == ["start"]
    assert leader.states() == "UNASSIGNED UNASSIGNED"
    leader.event("running")
    assert leader.states() == "RUNNING RUNNING"
    assert leader.reconcile() == []


def test_pause_resume_and_stop(leader: Leader) -> None:
    leader.reconcile()
    leader.event("running")
    leader.write(target_record("a", TargetState.PAUSED))
    assert leader.reconcile() == ["pause"]
    assert leader.states() == "PAUSED PAUSED"
    leader.write(target_record("a", TargetState.STARTED))
    assert leader.reconcile() == ["resume"]
    assert leader.states() == "RUNNING RUNNING"
    leader.write(target_record("a", TargetState.STOPPED))
    assert leader.reconcile() == ["stop"]
    assert leader.states() == "RUNNING RUNNING", "stopped only when the driver says so"
    leader.event("stopped")
    assert leader.states() == "STOPPED"
    assert leader.reconcile() == []
    leader.write(target_record("a", TargetState.STARTED))
    assert leader.reconcile() == ["start"]


def test_a_connector_that_is_stopped_from_the_first_is_never_started(leader: Leader) -> None:
    leader.write(target_record("a", TargetState.STOPPED))
    assert leader.reconcile() == []
    assert leader.states() == "STOPPED"


def test_a_changed_configuration_starts_anew_and_old_events_are_ignored(leader: Leader) -> None:
    leader.reconcile()
    old = leader.machine._epoch
    leader.write(connector_record("a", CONFIG | {"tasks.max": "2"}))
    assert leader.reconcile() == ["start"]
    leader.event("failed", epoch=old, trace="old")
    assert leader.states() == "UNASSIGNED UNASSIGNED UNASSIGNED"
    leader.write(connector_record("a", CONFIG | {"tasks.max": "1"}))
    leader.reconcile()
    leader.event("running")
    assert leader.states() == "RUNNING RUNNING", "the second task is gone"


def test_a_deleted_connector_leaves_no_status(leader: Leader) -> None:
    leader.reconcile()
    leader.event("running")
    leader.write(connector_record("a", None))
    assert leader.reconcile() == ["stop"]
    assert leader.states() == "none"


def test_retriable_failures_restart_with_back_off(leader: Leader) -> None:
    leader.reconcile()
    for delay in (10, 20, 40, 80, 160, 300, 300):
        leader.event("failed", trace="busy", retriable=True)
        assert leader.states() == "RUNNING FAILED"
        leader.now += delay - 1
        assert leader.reconcile() == []
        leader.now += 1
        assert leader.reconcile() == ["start"]


def test_restarts_are_bounded_and_other_failures_stay(leader: Leader) -> None:
    leader.write(connector_record("a", CONFIG | {"restart.max.attempts": "1"}))
    leader.reconcile()
    leader.event("failed", trace="busy", retriable=True)
    leader.now += 10
    assert leader.reconcile() == ["start"]
    leader.event("failed", trace="busy", retriable=True)
    leader.now += 10_000
    assert leader.reconcile() == []
    leader.write(connector_record("b", CONFIG | {"name": "b"}))
    leader.reconcile()
    leader.event("failed", name="b", trace="wrong", retriable=False, at_start=True)
    leader.now += 10_000
    assert leader.reconcile() == []
    assert leader.states("b") == "FAILED FAILED"


@pytest.mark.parametrize(("failed", "only_failed", "told"), [(True, True, 1), (False, True, 0), (False, False, 1)])
def test_a_restart_looks_at_states_if_it_is_told_to(leader: Leader, failed: bool, only_failed: bool, told: int) -> None:
    leader.reconcile()
    leader.event("failed" if failed else "running", trace="boom")
    facts = {"a": Facts(0, "1", 1)}
    effects = leader.machine.restart(leader.config, facts, "a", include_tasks=True, only_failed=only_failed)
    leader.told.clear()
    leader.take(effects)
    assert len(leader.told) == told
    assert leader.states() == ("RESTARTING RESTARTING" if told else "RUNNING RUNNING")


def test_a_driver_that_ends_leaves_nothing_running(leader: Leader) -> None:
    leader.write(connector_record("b", CONFIG | {"name": "b"}))
    leader.reconcile()
    leader.event("running", name="a", epoch=1)
    leader.write(target_record("b", TargetState.STOPPED))
    leader.reconcile()
    leader.take(leader.machine.forget_driver())
    assert (leader.states("a"), leader.states("b")) == ("UNASSIGNED UNASSIGNED", "STOPPED")
    assert leader.reconcile() == ["start"]


def test_tasks_count_once_they_are_committed() -> None:
    state = ConfigState()
    state.apply("connector-a-b", {"properties": CONFIG}, 0)
    records = task_records("a-b", [{"t": "0"}, {"t": "1"}])
    for key, value in records[:-1]:
        state.apply(key.decode(), decode(value), 1)
    found = state.get("a-b")
    assert found is not None
    assert found.tasks == ()
    state.apply(records[-1][0].decode(), decode(records[-1][1]), 2)
    found = state.get("a-b")
    assert found is not None
    assert found.tasks == ({"t": "0"}, {"t": "1"})


def test_states_of_older_workers_are_understood() -> None:
    state = ConfigState()
    state.apply("connector-a", {"properties": CONFIG}, 0)
    state.apply("target-state-a", {"state": "PAUSED"}, 1)
    found = state.get("a")
    assert found is not None
    assert found.target is TargetState.PAUSED
    state.apply("target-state-a", {"state": "PAUSED", "state.v2": "STOPPED"}, 2)
    found = state.get("a")
    assert found is not None
    assert found.target is TargetState.STOPPED
    for key in ("session-key", "tasks-fencing-a", "nonsense"):
        assert state.apply(key, {"x": 1}, 3) is None


def test_a_generation_is_remembered() -> None:
    state = ConfigState()
    state.apply("connector-a", {"properties": CONFIG}, 0)
    key, value = generation_record("a", 4)
    state.apply(key.decode(), decode(value), 1)
    found = state.get("a")
    assert found is not None
    assert found.generation == 4


def test_offsets_have_kafkas_keys() -> None:
    key, value = offset_record("a", {"filename": "x"}, {"position": 6})
    assert (key, value) == (b'["a",{"filename":"x"}]', b'{"position":6}')
    state = OffsetState()
    state.apply(key, decode(value))
    assert state.entries("a") == [({"filename": "x"}, {"position": 6})]
    state.apply(b'["a", {"filename": "x"}]', None)
    assert state.entries("a") == []


def test_statuses_and_topics_have_kafkas_keys() -> None:
    assert status_record("a", 0, Status("RUNNING", None, "w:1", 3, "1")) == (
        b"status-task-a-0",
        b'{"state":"RUNNING","trace":null,"worker_id":"w:1","generation":3,"version":"1"}',
    )
    key, value = topic_record("a", "t", 5)
    assert key == b"status-topic-t:connector-a"
    assert json.loads(value or b"")["topic"] == {"name": "t", "connector": "a", "task": 0, "discoverTimestamp": 5}
    state = StatusState()
    state.apply(key.decode(), decode(value))
    assert state.topics["a"] == {"t"}
