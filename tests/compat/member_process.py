"""Members of groups in processes of their own, which can be killed without a chance to say goodbye.

The process tells every event as a line of JSON; it leaves its group when its standard input ends. `as_process` makes
such a member of any of those in `group_members.py` and `our_members.py`; run as a program, this file is the process.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from typing import Any

from group_members import DEADLINE_SECONDS, MEMBERS, READ, Event, Member


class ProcessMember(Member):
    """The member as a test sees it: what its process tells has happened to it."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def event(self, line: str) -> Event:
        raise NotImplementedError

    def start(self) -> Member:
        pipe = subprocess.PIPE
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(self.command(), stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=path)
        return super().start()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        super().stop()

    def kill(self) -> None:
        """Without a chance to say goodbye, or to finish a line."""
        assert self._process.stdin is not None
        self._process.kill()
        self._process.stdin.close()
        self._thread.join(DEADLINE_SECONDS)

    def _run(self) -> None:
        process = self._process
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        listener = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        listener.start()
        for line in process.stdout:
            if line.endswith("\n"):
                self.take(self.event(line))
        code = process.wait(DEADLINE_SECONDS)
        listener.join(DEADLINE_SECONDS)
        process.stdout.close()
        process.stderr.close()
        if code > 0:
            raise AssertionError(f"the member {self.name} ended with {code}:\n{''.join(said)[-2000:]}")


class PythonProcess(ProcessMember):
    """A member of `kind` in a process."""

    def __init__(self, kind: str, *arguments: Any, **options: Any) -> None:
        self.name = kind  # type: ignore[misc]
        super().__init__(*arguments, **options)

    def command(self) -> list[str]:
        names = ("bootstrap", "group", "topic", "session_ms", "instance", "assignor", "protocol")
        options = {name: getattr(self, name) for name in names}
        return [sys.executable, __file__, self.name, json.dumps(options)]

    def event(self, line: str) -> Event:
        at, kind, rows = json.loads(line)
        if kind == READ:
            return Event(at, kind, [(partition, offset, base64.b64decode(value)) for partition, offset, value in rows])
        return Event(at, kind, rows)


def as_process(kind: str, *arguments: Any, **options: Any) -> ProcessMember:
    if kind == "java":
        from java_members import JavaMember

        return JavaMember(*arguments, **options)
    return PythonProcess(kind, *arguments, **options)


# --- in the process ---------------------------------------------------------------------------------------------------


def live(kind: str, options: dict[str, Any]) -> None:
    from our_members import OurMember

    class Telling({**MEMBERS, OurMember.name: OurMember}[kind]):  # type: ignore[misc]
        def take(self, event: Event) -> None:
            super().take(event)
            rows = event.rows
            if event.kind == READ:
                rows = [(partition, offset, base64.b64encode(value).decode()) for partition, offset, value in rows]
            print(json.dumps((event.at, event.kind, rows)), flush=True)

    member = Telling(options.pop("bootstrap"), options.pop("group"), options.pop("topic"), **options)
    member.start()
    while member._thread.is_alive() and os.read(sys.stdin.fileno(), 1):
        pass
    member.stop()


if __name__ == "__main__":
    live(sys.argv[1], json.loads(sys.argv[2]))
