"""A program in a thread that commits something over and over: who kills brokers waits for its next commit."""

from __future__ import annotations

import threading
import time
from typing import Final

PATIENCE_SECONDS: Final = 90


class Committing:
    name: str

    def __init__(self) -> None:
        """Starts the thread, so whatever it needs must be there before."""
        self.committed_ns = 0  # when the last commit was acknowledged
        self.problems: list[str] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        raise NotImplementedError

    def wait_since(self, mark_ns: int) -> float:
        """Until a commit is acknowledged after the mark: seconds since then."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.committed_ns < mark_ns:
            assert not self.problems, self.problems[:3]
            assert self._thread.is_alive(), f"{self.name} has ended"
            assert time.monotonic() < deadline, f"{self.name} commits nothing any more"
            time.sleep(0.005)
        return (self.committed_ns - mark_ns) / 1e9

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} does not end"
