"""The programs of the demo, each a process of its own: the commands that users type, with their lines shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

BARNABAS: Final = str(Path(sys.executable).parent / "barnabas")
EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "shop"
WAIT_SECONDS_MAX: Final = 180.0
# The JVMs of the demo end before the optimising compiler would pay.
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DRIVER: Final = "barnabas.connect.driver"

_started = time.monotonic()


def headline(text: str) -> None:
    """Print the title of a step with the seconds since the start."""
    line = f"{text}  ({time.monotonic() - _started:.0f} s)"
    print(f"\n\033[1m{line}\033[0m" if sys.stdout.isatty() else f"\n{line}", flush=True)


def run(arguments: str, *hidden: str) -> None:
    """Run ``barnabas`` with ``arguments`` and show what it prints; ``hidden`` are arguments that are not shown."""
    print(f"$ barnabas {arguments}", flush=True)
    done = subprocess.run([BARNABAS, *arguments.split(), *hidden], capture_output=True, text=True, cwd=EXAMPLE)
    print(done.stdout, end="", flush=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr}`barnabas {arguments}` ended with code {done.returncode}")


class Service:
    """A command that runs until it is stopped."""

    def __init__(self, arguments: str, hidden: Sequence[str], environment: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._command = [BARNABAS, *arguments.split(), *hidden]
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[str] | None = None
        self._lines: list[str] = []
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Start the command."""
        print(f"$ barnabas {self._arguments}", flush=True)
        self._lines = []
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
            cwd=EXAMPLE,
        )
        self._reader = threading.Thread(target=self._show, daemon=True)
        self._reader.start()

    def _show(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            print(f"   {line}", end="", flush=True)

    def wait_for(self, pattern: str) -> str:
        """Wait for a line that matches ``pattern``; return it."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while time.monotonic() < deadline:
            for line in self._lines.copy():
                if re.search(pattern, line):
                    return line
            self.check()
            time.sleep(0.05)
        raise SystemExit(f"`barnabas {self._arguments}` did not print {pattern!r} in {WAIT_SECONDS_MAX:.0f} s")

    def check(self) -> None:
        """Raise if the command has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise SystemExit(f"`barnabas {self._arguments}` ended with code {self._process.returncode}")

    def kill(self) -> None:
        """End the command as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop the command and wait until it has ended."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(WAIT_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill_child(self, module: str) -> int:
        """Kill the child process that runs ``module``; return its process id."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for child in children:
            with suppress(FileNotFoundError):
                if module.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(int(child), signal.SIGKILL)
                    return int(child)
        raise SystemExit(f"`barnabas {self._arguments}` has no child process {module}")
