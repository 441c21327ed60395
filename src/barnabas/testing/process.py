"""A server in a process of its own: started until it says READY, and then stopped, killed or frozen by a test.

What is started is the caller's; a broker is ``barnabas up``, a broker of a cluster is ``barnabas broker start``.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from typing import Final

from barnabas.model.errors import BarnabasError

READY_SECONDS_MAX: Final = 300  # a broker that was killed may have much to look through
STOP_SECONDS_MAX: Final = 30


class BrokerFailed(BarnabasError):
    """The broker did not start, or died; the message has its last words."""


class ServerProcess:
    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def spawn(self, command: list[str]) -> None:
        assert self.process is None, "it runs already"
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def until_ready(self) -> str:
        """What it says of itself after READY."""
        assert self.process is not None
        assert self.process.stdout is not None
        said: list[str] = []
        patience = threading.Timer(READY_SECONDS_MAX, self.process.kill)
        patience.start()
        try:
            for line in self.process.stdout:
                said.append(line)
                if line.startswith("READY "):
                    return line.split()[1]
        finally:
            is_over = not patience.is_alive()
            patience.cancel()
        code = self._reap()
        if is_over:
            raise BrokerFailed(f"the broker was not ready within {READY_SECONDS_MAX} seconds: {''.join(said)}")
        raise BrokerFailed(f"the broker ended with code {code}: {''.join(said)}")

    def kill(self) -> None:
        """As a crash of the process: no chance to write anything."""
        self._signal(signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        self._signal(signal.SIGTERM)
        self._reap()

    def pause(self) -> None:
        """Freeze it: its connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def _reap(self) -> int:
        if self.process is None:
            return 0
        assert self.process.stdout is not None
        process, self.process = self.process, None
        try:
            return process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise BrokerFailed(f"the broker did not stop within {STOP_SECONDS_MAX} seconds") from None
        finally:
            assert process.stdout is not None
            process.stdout.close()
