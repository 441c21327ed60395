"""Copying processes that are killed and started again: the program beside this file, each under a supervisor."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

PROGRAM = Path(__file__).with_name("cluster_copy_program.py")


class Copier:
    """Started again under the same transactional id whenever it has ended."""

    def __init__(self, number: int, bootstrap: str, source: str, target: str, group: str, protocol: str) -> None:
        self._words = [bootstrap, source, target, group, protocol, f"{group}-copier-{number}"]
        self.committed = 0  # records in transactions whose commit it has heard of
        self.starts = 0
        self.restarts: Counter[str] = Counter()  # why it began anew within the process
        self.unexpected: list[str] = []
        self._lock = threading.Lock()  # nobody is started by one thread after the other has looked for whom to kill
        self._is_stopping = False
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name=f"copier-{number}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (process := self._started()) is not None:
            assert process.stdout is not None
            with process.stdout:
                for line in process.stdout:
                    kind, _, rest = line.rstrip("\n").partition(" ")
                    if kind == "C":
                        self.committed += int(rest)
                    else:
                        self.restarts[rest.partition(":")[0]] += 1
            if process.wait() != -signal.SIGKILL:
                self.unexpected.append(f"a copier ended with {process.returncode}")

    def _started(self) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._is_stopping:
                return None
            self.starts += 1
            command = [sys.executable, str(PROGRAM), *self._words, str(self.starts)]
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            return self._process

    def signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(number)

    def stop(self) -> None:
        with self._lock:
            self._is_stopping = True
        self.signal(signal.SIGKILL)
        self._thread.join()
