"""The driver's process: commands of the leader in, events out, Spark queries between them.

It reads JSON lines from its input, the first one with its settings, and ends when the input ends: a leader that dies
takes its driver along.
"""

from __future__ import annotations

import os
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from barnabas.connect.catalog import PluginSettings
from barnabas.connect.driver.checkpoints import CheckpointStore
from barnabas.connect.driver.engine import Engine
from barnabas.connect.driver.prepared import Prepared, Spec
from barnabas.connect.errors import RetriableError
from barnabas.connect.records import Entry
from barnabas.connect.references import Resolver
from barnabas.connect.secrets import Redactor
from barnabas.connect.tolerance import trace_of
from barnabas.model.errors import BarnabasError
from barnabas.observe.log import logger

TICK_SECONDS: Final = 0.5
ORPHAN_SECONDS: Final = 0.2
DIRECTORY: Final = "driver"  # with the number of the process, below the worker's data directory
END: Final = None  # in the queue of commands: the input has ended

_log: Final = logger("connect")
Emit = Callable[[Mapping[str, Any]], None]


class Driver:
    """Carries out commands, one at a time."""

    def __init__(self, settings: Mapping[str, Any], emit: Emit) -> None:
        plugins = settings["plugins"]
        self._plugins = PluginSettings(plugins.get("directory"), tuple(plugins["allow"]))
        self._resolver = Resolver(allowed_paths=plugins.get("allowed_paths", ()))
        self._client: Mapping[str, str] = settings["client"]
        self._emit = emit
        self._epochs: dict[str, int] = {}
        self._parent = os.getppid()
        store = CheckpointStore(self._client, settings["group"], settings["checkpoint_topic"])
        self._engine = Engine(
            store,
            client=self._client,
            group=settings["group"],
            master=settings["master"],
            directory=own_directory(Path(settings["data_dir"])),
            on_event=self._on_event,
        )

    def _on_event(self, kind: str, name: str, more: Mapping[str, Any]) -> None:
        self._emit({"event": kind, "name": name, "epoch": self._epochs.get(name, 0), **more})

    def run(self, commands: queue.Queue[Mapping[str, Any] | None]) -> None:
        """Carry out commands until the input ends."""
        while True:
            try:
                command = commands.get(timeout=TICK_SECONDS)
            except queue.Empty:
                self._engine.watch()
                continue
            if command is END:
                if self._is_orphan():
                    return  # another driver takes over: there is nothing to finish
                break
            self._carry_out(command)
        self._engine.close()

    def _is_orphan(self) -> bool:
        """Return whether the worker has died; its end of the pipe closes a moment before."""
        time.sleep(ORPHAN_SECONDS)
        return os.getppid() != self._parent

    def _carry_out(self, command: Mapping[str, Any]) -> None:
        name, op = command["name"], command["op"]
        redact: Callable[[str], str] = str
        try:
            if op == "start":
                self._epochs[name] = command["epoch"]
                config, resolved = self._resolver.resolve(command["config"])
                redact = Redactor(resolved)
                spec = Spec(name, command["generation"], config, frozenset(resolved), self._plugins, dict(self._client))
                prepared = Prepared(spec)
                redact = prepared.redact
                entries = [Entry(partition, offset) for partition, offset in command["entries"]]
                self._engine.start(prepared, entries, is_paused=command["paused"])
            elif op == "stop":
                self._engine.stop(name)
            elif op in ("pause", "resume"):
                self._engine.pause(name, is_paused=op == "pause")
        except Exception as error:  # noqa: BLE001 - plugins may raise anything; their connector fails, no other
            is_retriable = isinstance(error, RetriableError) or bool(getattr(error, "retriable", False))
            trace = redact(trace_of(error))
            self._on_event("failed", name, {"trace": trace, "retriable": is_retriable, "at_start": True})
            if not isinstance(error, BarnabasError):
                _log.error("connector failed", connector=name, error=redact(str(error)))


def own_directory(data_dir: Path) -> Path:
    """Make a directory for this process, and remove those of drivers that are gone.

    A driver whose worker was killed may still end its batches when the next one starts: they must share no files.
    """
    for path in data_dir.glob(f"{DIRECTORY}-*"):
        if not Path(f"/proc/{path.name.rpartition('-')[2]}").exists():
            shutil.rmtree(path, ignore_errors=True)
    made = data_dir / f"{DIRECTORY}-{os.getpid()}"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True, mode=0o700)
    return made


def _read_commands(lines: Any, commands: queue.Queue[Mapping[str, Any] | None]) -> None:
    for line in lines:
        commands.put(msgspec.json.decode(line))
    commands.put(END)


def main() -> None:
    """Run the process. Whatever plugins and Spark print goes to the standard error."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lock = threading.Lock()

    def emit(event: Mapping[str, Any]) -> None:
        with lock:
            output.write(msgspec.json.encode(event) + b"\n")
            output.flush()

    settings = msgspec.json.decode(sys.stdin.buffer.readline())
    started = time.monotonic()
    driver = Driver(settings, emit)
    _log.info("driver started", seconds=round(time.monotonic() - started, 1))
    commands: queue.Queue[Mapping[str, Any] | None] = queue.Queue()
    threading.Thread(target=_read_commands, args=(sys.stdin.buffer, commands), daemon=True).start()
    driver.run(commands)
    os._exit(0)  # threads of plugins that hang must not keep the process


if __name__ == "__main__":
    main()
