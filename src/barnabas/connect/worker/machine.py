"""Decides what the leader does about connectors: what to tell the driver and which statuses to write. Pure.

The config topic says what is wanted; the driver's events say what is. ``reconcile`` compares the two. Each start of a
connector in the driver has an epoch of its own, and events of older epochs are ignored::

    wanted   in the driver            what is done
    STARTED  not there, or changed    start
    PAUSED   running                  pause        (a new one is started paused)
    STARTED  paused                   resume
    STOPPED  there                    stop; tasks disappear
    gone     there                    stop; statuses disappear
    STARTED  failed, retriable        start again after a back-off of 10 s, 20 s … 5 min
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from barnabas.connect.worker.store import (
    ConfigState,
    Connector,
    State,
    Status,
    TargetState,
    Write,
    status_record,
    task_records,
)

BACKOFF_SECONDS_FIRST: Final = 10.0
BACKOFF_SECONDS_MAX: Final = 300.0
STEADY_SECONDS: Final = 600.0  # without a failure, after which failures are counted anew


class Facts(NamedTuple):
    """What the plugins know of a configuration; asked for outside, since the leader runs no plugin code."""

    revision: int  # of the configuration that was asked about
    version: str
    task_count: int


class Tell(NamedTuple):
    """Effect: a command for the driver."""

    command: dict[str, Any]


class Store(NamedTuple):
    """Effect: records for a topic."""

    topic: Literal["config", "status"]
    records: list[Write]


Effect = Tell | Store


@dataclass(slots=True)
class _Hosted:
    """A connector in the driver."""

    epoch: int
    revision: int
    is_paused: bool
    task_count: int
    version: str | None
    is_up: bool = False
    is_failed: bool = False
    attempts: int = 0  # automatic restarts in a row
    restart_at: float | None = None
    failed_at: float = 0.0
    restart_max: int = -1


@dataclass(slots=True)
class Machine:
    """State of the leader. ``worker_id`` stands in every status that it writes."""

    worker_id: str
    generation: int = 0
    _hosted: dict[str, _Hosted] = field(default_factory=dict)
    _epoch: int = 0
    _idle: set[str] = field(default_factory=set)  # connectors whose status says STOPPED
    _stopping: dict[str, _Hosted] = field(default_factory=dict)  # until the driver says that their batch is done

    @property
    def is_needed(self) -> bool:
        """Return whether the driver has anything to run."""
        return bool(self._hosted)

    def wanted(self, config: ConfigState) -> list[str]:
        """Return the connectors that must be in the driver."""
        found = [config.get(name) for name in config.names()]
        return [each.name for each in found if each is not None and each.target is not TargetState.STOPPED]

    def next_wakeup(self) -> float | None:
        """Return when the next automatic restart is due."""
        times = [each.restart_at for each in self._hosted.values() if each.restart_at is not None]
        return min(times, default=None)

    def forget_driver(self) -> list[Effect]:
        """The driver has ended: nothing is hosted any more."""
        effects: list[Effect] = []
        for name, hosted in self._hosted.items():
            if not hosted.is_failed:
                effects.append(self._statuses(name, hosted, State.UNASSIGNED, State.UNASSIGNED))
        self._hosted.clear()
        effects += [self._at_rest(name, hosted) for name, hosted in self._stopping.items()]
        self._stopping.clear()
        return effects

    def reconcile(self, config: ConfigState, facts: Mapping[str, Facts], now: float) -> list[Effect]:
        """Return what must be done so that the driver does what the config topic wants."""
        effects: list[Effect] = []
        for name in [name for name in self._hosted if config.get(name) is None]:
            effects += self._drop(name)
        for name in (self._idle | set(self._stopping)) - set(config.names()):
            effects.append(Store("status", [status_record(name, None, None)]))
            self._stopping.pop(name, None)
        self._idle &= set(config.names())
        for name in config.names():
            connector = config.get(name)
            assert connector is not None
            if connector.target is TargetState.STOPPED:
                effects += self._stopped(name, facts.get(name))
            elif name in facts and facts[name].revision == connector.revision:
                effects += self._started(connector, facts[name], now)
        return effects

    def _drop(self, name: str) -> list[Effect]:
        hosted = self._hosted.pop(name)
        tombstones = [status_record(name, None, None)]
        tombstones += [status_record(name, task, None) for task in range(hosted.task_count)]
        return [Tell({"op": "stop", "name": name, "epoch": hosted.epoch}), Store("status", tombstones)]

    def _stopped(self, name: str, facts: Facts | None) -> list[Effect]:
        hosted = self._hosted.pop(name, None)
        if hosted is not None:
            self._stopping[name] = hosted
            return [Tell({"op": "stop", "name": name, "epoch": hosted.epoch})]
        if name in self._idle or name in self._stopping:
            return []
        count = 0 if facts is None else facts.task_count
        return [self._at_rest(name, _Hosted(0, 0, False, count, None if facts is None else facts.version))]

    def _at_rest(self, name: str, hosted: _Hosted) -> Store:
        self._idle.add(name)
        records = [status_record(name, task, None) for task in range(hosted.task_count)]
        return Store("status", [*records, status_record(name, None, self._status(State.STOPPED, hosted.version))])

    def _started(self, connector: Connector, facts: Facts, now: float) -> list[Effect]:
        name = connector.name
        self._idle.discard(name)
        self._stopping.pop(name, None)
        is_paused = connector.target is TargetState.PAUSED
        hosted = self._hosted.get(name)
        if hosted is None or hosted.revision != connector.revision:
            return self._start(connector, facts, attempts=0)
        if hosted.restart_at is not None and now >= hosted.restart_at:
            return self._start(connector, facts, attempts=hosted.attempts + 1)
        if hosted.is_paused != is_paused:
            hosted.is_paused = is_paused
            op = "pause" if is_paused else "resume"
            effects: list[Effect] = [Tell({"op": op, "name": name, "epoch": hosted.epoch})]
            if not hosted.is_failed:
                state = State.PAUSED if is_paused else State.RUNNING
                effects.append(self._statuses(name, hosted, state, state))
            return effects
        return []

    def _start(
        self,
        connector: Connector,
        facts: Facts,
        *,
        attempts: int,
        states: tuple[State, State] = (State.UNASSIGNED, State.UNASSIGNED),
    ) -> list[Effect]:
        self._epoch += 1
        name = connector.name
        old = self._hosted.get(name)
        is_paused = connector.target is TargetState.PAUSED
        restart_max = _whole(connector.config.get("restart.max.attempts"), -1)
        hosted = _Hosted(
            self._epoch, connector.revision, is_paused, facts.task_count, facts.version,
            attempts=attempts, restart_max=restart_max,
        )  # fmt: skip
        if old is not None:
            hosted.failed_at = old.failed_at
        self._hosted[name] = hosted
        command = {
            "op": "start",
            "name": name,
            "epoch": self._epoch,
            "config": dict(connector.config),
            "generation": connector.generation,
            "paused": is_paused,
        }
        effects: list[Effect] = []
        tasks: list[Mapping[str, str]] = [{**connector.config, "task.id": str(n)} for n in range(facts.task_count)]
        if tuple(tasks) != connector.tasks:
            effects.append(Store("config", task_records(name, tasks)))
        if old is None or old.task_count > facts.task_count:
            gone = range(facts.task_count, old.task_count if old is not None else facts.task_count)
            effects.append(Store("status", [status_record(name, task, None) for task in gone]))
        if attempts == 0:
            effects.append(self._statuses(name, hosted, *states))
        # Statuses come first: the driver's events must not be overtaken by them.
        return [*effects, Tell(command)]

    def refuse(self, connector: Connector, trace: str) -> list[Effect]:
        """The configuration cannot be used, for instance because its plugin is not installed."""
        name = connector.name
        effects: list[Effect] = []
        hosted = self._hosted.get(name)
        if hosted is not None and hosted.revision == connector.revision:
            return effects
        if hosted is not None:
            effects.append(Tell({"op": "stop", "name": name, "epoch": hosted.epoch}))
        self._epoch += 1
        self._hosted[name] = made = _Hosted(self._epoch, connector.revision, False, 0, None, is_failed=True)
        return [*effects, self._statuses(name, made, State.FAILED, State.FAILED, trace)]

    def restart(
        self, config: ConfigState, facts: Mapping[str, Facts], name: str, *, include_tasks: bool, only_failed: bool
    ) -> list[Effect]:
        """Restart a connector. Its tasks are restarted with it, since they are parts of one query."""
        connector, hosted = config.get(name), self._hosted.get(name)
        if connector is None or name not in facts or connector.target is TargetState.STOPPED:
            return []
        if only_failed and (hosted is None or not hosted.is_failed):
            return []
        states = (State.RESTARTING, State.RESTARTING if include_tasks else State.UNASSIGNED)
        return self._start(connector, facts[name], attempts=0, states=states)

    def on_event(self, event: Mapping[str, Any], now: float) -> list[Effect]:
        """Take in an event of the driver: ``running``, ``failed`` or ``stopped``."""
        name, epoch = event.get("name"), event.get("epoch")
        stopping = self._stopping.get(str(name))
        if stopping is not None and event.get("event") == "stopped":
            del self._stopping[str(name)]
            return [self._at_rest(str(name), stopping)]
        hosted = self._hosted.get(str(name))
        if hosted is None or hosted.epoch != epoch:
            return []
        match event.get("event"):
            case "running":
                hosted.is_up, hosted.is_failed, hosted.restart_at = True, False, None
                state = State.PAUSED if hosted.is_paused else State.RUNNING
                return [self._statuses(str(name), hosted, state, state)]
            case "failed":
                return self._failed(str(name), hosted, event, now)
        return []

    def _failed(self, name: str, hosted: _Hosted, event: Mapping[str, Any], now: float) -> list[Effect]:
        hosted.is_failed = True
        if now - hosted.failed_at > STEADY_SECONDS:
            hosted.attempts = 0
        hosted.failed_at = now
        may_restart = hosted.restart_max < 0 or hosted.attempts < hosted.restart_max
        if event.get("retriable") and may_restart:
            hosted.restart_at = now + min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_FIRST * 2**hosted.attempts)
        trace = str(event.get("trace") or "")
        of_connector = State.FAILED if event.get("at_start") else State.RUNNING
        return [self._statuses(name, hosted, of_connector, State.FAILED, trace)]

    def _statuses(self, name: str, hosted: _Hosted, connector: State, tasks: State, trace: str | None = None) -> Store:
        trace_of_connector = trace if connector is State.FAILED else None
        records = [status_record(name, None, self._status(connector, hosted.version, trace_of_connector))]
        # A task's trace is written only where the task failed.
        of_task = self._status(tasks, hosted.version, trace)
        records += [status_record(name, task, of_task) for task in range(hosted.task_count)]
        return Store("status", records)

    def _status(self, state: State, version: str | None, trace: str | None = None) -> Status:
        return Status(state.value, trace, self.worker_id, self.generation, version)


def _whole(text: str | None, default: int) -> int:
    try:
        return int(text) if text is not None else default
    except ValueError:
        return default
