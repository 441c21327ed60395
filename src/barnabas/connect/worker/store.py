"""What the worker's topics hold, in Kafka Connect's own formats, and the state that their records add up to. Pure.

Topics move between Kafka's workers and ours in both directions: keys and values are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

CONNECTOR: Final = "connector-"
TARGET_STATE: Final = "target-state-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
RESTART: Final = "restart-connector-"
LOGGER: Final = "logger-cluster-"
GENERATION: Final = "generation-"  # ours; Kafka's workers ignore keys that they do not know
STATUS_CONNECTOR: Final = "status-connector-"
STATUS_TASK: Final = "status-task-"
STATUS_TOPIC: Final = "status-topic-"
_TASK_KEY: Final = re.compile(r"task-(.+)-(\d+)", re.DOTALL)
_STATUS_TASK_KEY: Final = re.compile(r"status-task-(.+)-(\d+)", re.DOTALL)
_STATUS_TOPIC_KEY: Final = re.compile(r"status-topic-(.+?):connector-(.+)", re.DOTALL)


class TargetState(StrEnum):
    """What the user wants of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class State(StrEnum):
    """What a connector or a task does, as the REST API shows it."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


class Change(NamedTuple):
    """What a record of the config topic has changed: ``config``, ``state``, ``removed``, ``restart`` or ``logger``."""

    kind: str
    name: str
    detail: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector as the config topic has it."""

    name: str
    config: Mapping[str, str]
    revision: int  # offset of the record with its newest configuration
    generation: int = 0  # of its offsets: grows when a user changes them
    target: TargetState = TargetState.STARTED
    tasks: tuple[Mapping[str, str], ...] = ()


@dataclass(slots=True)
class ConfigState:
    """The state that the config topic's records add up to."""

    _configs: dict[str, tuple[Mapping[str, str], int]] = field(default_factory=dict)
    _targets: dict[str, TargetState] = field(default_factory=dict)
    _tasks: dict[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    _deferred: dict[str, dict[int, Mapping[str, str]]] = field(default_factory=dict)  # tasks before their commit
    _generations: dict[str, int] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the names of all connectors."""
        return sorted(self._configs)

    def get(self, name: str) -> Connector | None:
        """Return a connector."""
        found = self._configs.get(name)
        if found is None:
            return None
        config, revision = found
        target = self._targets.get(name, TargetState.STARTED)
        tasks = () if target is TargetState.STOPPED else self._tasks.get(name, ())
        return Connector(name, config, revision, self._generations.get(name, 0), target, tasks)

    def apply(self, key: str, value: Mapping[str, Any] | None, offset: int) -> Change | None:
        """Take in a record; return what it changes. Keys that are unknown are left alone."""
        if key.startswith(CONNECTOR):
            return self._connector(key.removeprefix(CONNECTOR), value, offset)
        if key.startswith(TARGET_STATE):
            return self._target(key.removeprefix(TARGET_STATE), value)
        if key.startswith(COMMIT):
            return self._commit(key.removeprefix(COMMIT), value)
        if key.startswith(RESTART) and value is not None:
            return Change("restart", key.removeprefix(RESTART), value)
        if key.startswith(LOGGER) and value is not None:
            return Change("logger", key.removeprefix(LOGGER), value)
        if key.startswith(GENERATION) and value is not None:
            self._generations[key.removeprefix(GENERATION)] = int(value.get("generation", 0))
            return None
        match = _TASK_KEY.fullmatch(key)
        if match is not None and value is not None:
            self._deferred.setdefault(match[1], {})[int(match[2])] = dict(value.get("properties") or {})
        return None

    def _connector(self, name: str, value: Mapping[str, Any] | None, offset: int) -> Change | None:
        properties = None if value is None else value.get("properties")
        if properties is None:
            self._configs.pop(name, None)
            self._tasks.pop(name, None)
            self._deferred.pop(name, None)
            return Change("removed", name)
        self._configs[name] = ({str(key): str(each) for key, each in properties.items()}, offset)
        return Change("config", name)

    def _target(self, name: str, value: Mapping[str, Any] | None) -> Change | None:
        if value is None:
            self._targets.pop(name, None)
            return None
        try:
            self._targets[name] = TargetState(str(value.get("state.v2") or value.get("state")))
        except ValueError:
            return None
        return Change("state", name)

    def _commit(self, name: str, value: Mapping[str, Any] | None) -> Change | None:
        deferred = self._deferred.pop(name, {})
        count = 0 if value is None else int(value.get("tasks", 0))
        if set(deferred) >= set(range(count)):
            self._tasks[name] = tuple(deferred[index] for index in range(count))
        return None


class Status(msgspec.Struct, frozen=True, omit_defaults=False):
    """Value of the status topic."""

    state: str
    trace: str | None = None
    worker_id: str = ""
    generation: int = 0
    version: str | None = None

    def shown(self) -> dict[str, Any]:
        """Return what the REST API shows of it."""
        made: dict[str, Any] = {"state": self.state, "worker_id": self.worker_id, "version": self.version}
        return made if self.trace is None else made | {"trace": self.trace}


@dataclass(slots=True)
class StatusState:
    """The state that the status topic's records add up to."""

    connectors: dict[str, Status] = field(default_factory=dict)
    tasks: dict[str, dict[int, Status]] = field(default_factory=dict)
    topics: dict[str, set[str]] = field(default_factory=dict)

    def apply(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Take in a record."""
        if match := _STATUS_TOPIC_KEY.fullmatch(key):
            named = self.topics.setdefault(match[2], set())
            named.discard(match[1]) if value is None else named.add(match[1])
        elif match := _STATUS_TASK_KEY.fullmatch(key):
            tasks = self.tasks.setdefault(match[1], {})
            if value is None:
                tasks.pop(int(match[2]), None)
            else:
                tasks[int(match[2])] = _status(value)
        elif key.startswith(STATUS_CONNECTOR):
            name = key.removeprefix(STATUS_CONNECTOR)
            if value is None:
                self.connectors.pop(name, None)
            else:
                self.connectors[name] = _status(value)

    def shown(self, name: str, kind: str) -> dict[str, Any] | None:
        """Return a connector's status as the REST API shows it."""
        status = self.connectors.get(name)
        if status is None:
            return None
        tasks = [{"id": number} | each.shown() for number, each in sorted(self.tasks.get(name, {}).items())]
        return {"name": name, "connector": status.shown(), "tasks": tasks, "type": kind}


def _status(value: Mapping[str, Any]) -> Status:
    known = {name: value.get(name) for name in ("trace", "worker_id", "generation", "version")}
    return Status(str(value.get("state")), **{name: each for name, each in known.items() if each is not None})


@dataclass(slots=True)
class OffsetState:
    """The state that the offset topic's records add up to: offsets by connector and partition of its source."""

    _offsets: dict[str, dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]] = field(default_factory=dict)

    def apply(self, key: bytes, value: Mapping[str, Any] | None) -> None:
        """Take in a record; its key is a pair of connector and partition."""
        try:
            name, partition = msgspec.json.decode(key, type=tuple[str, dict[str, Any]])
        except msgspec.DecodeError:
            return
        known = self._offsets.setdefault(name, {})
        text = canonical(partition)
        if value is None:
            known.pop(text, None)
        else:
            known[text] = (partition, value)

    def entries(self, name: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Return partitions and offsets of a connector."""
        return [entry for _, entry in sorted(self._offsets.get(name, {}).items())]


def canonical(value: Any) -> str:
    """Return JSON that is equal for equal values."""
    return msgspec.json.encode(value, order="sorted").decode()


def decode(data: bytes | None) -> Mapping[str, Any] | None:
    """Return a value of one of the topics, or None for a tombstone or something else."""
    if data is None:
        return None
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None
    # Workers that write with schemas wrap the value.
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        found = found["payload"]
    return found if isinstance(found, dict) else None


def encode(value: Mapping[str, Any] | Status | None) -> bytes | None:
    """Return the bytes of a value; None is a tombstone."""
    return None if value is None else msgspec.json.encode(value)


Write = tuple[bytes, bytes | None]  # key and value of a record


def connector_record(name: str, config: Mapping[str, str] | None) -> Write:
    """Return the record that sets or, with None, removes a configuration."""
    return (CONNECTOR + name).encode(), None if config is None else encode({"properties": dict(config)})


def target_record(name: str, target: TargetState | None) -> Write:
    """Return the record that sets what is wanted of a connector."""
    key = (TARGET_STATE + name).encode()
    if target is None:
        return key, None
    # Workers before 3.5 know only the first key, and no STOPPED.
    old = TargetState.PAUSED if target is TargetState.STOPPED else target
    return key, encode({"state": old.value, "state.v2": target.value})


def task_records(name: str, tasks: list[Mapping[str, str]]) -> list[Write]:
    """Return the records that set the tasks of a connector."""
    made: list[Write] = [
        (f"{TASK}{name}-{index}".encode(), encode({"properties": dict(each)})) for index, each in enumerate(tasks)
    ]
    return [*made, ((COMMIT + name).encode(), encode({"tasks": len(tasks)}))]


def generation_record(name: str, generation: int) -> Write:
    """Return the record that starts a new generation of a connector's offsets."""
    return (GENERATION + name).encode(), encode({"generation": generation})


def logger_record(name: str, level: str) -> Write:
    """Return the record that sets the level of a logger on all workers."""
    return (LOGGER + name).encode(), encode({"level": level})


def restart_record(name: str, *, include_tasks: bool, only_failed: bool) -> Write:
    """Return the record that asks for a restart."""
    value = encode({"include-tasks": include_tasks, "only-failed": only_failed})
    return (RESTART + name).encode(), value


def status_record(name: str, task: int | None, status: Status | None) -> Write:
    """Return the record of a connector's or a task's status."""
    key = f"{STATUS_CONNECTOR}{name}" if task is None else f"{STATUS_TASK}{name}-{task}"
    return key.encode(), encode(status)


def topic_record(name: str, topic: str, now_ms: int | None) -> Write:
    """Return the record that a connector uses a topic, or with None that it does not."""
    key = f"{STATUS_TOPIC}{topic}:connector-{name}".encode()
    if now_ms is None:
        return key, None
    detail = {"name": topic, "connector": name, "task": 0, "discoverTimestamp": now_ms}
    return key, encode({"topic": detail})


def offset_record(name: str, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> Write:
    """Return the record of a source's offset; None forgets it."""
    return msgspec.json.encode([name, dict(partition)]), None if offset is None else encode(dict(offset))
