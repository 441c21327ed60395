"""Barnabas as a peer: the installed command line with its defaults, as one process, as two and as three.

The command says `READY host:port` on its standard output when it answers; nothing of the product is imported, so what
is measured is what a user starts. Several brokers are `barnabas up --brokers N`, with the process that watches them.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from bench.peers.peer import READY_SECONDS_MAX, Peer, PeerFailed
from bench.probe import NotAnswering

_READY = re.compile(r"READY\s+([\w.\-]+):(\d+)")
_RETRY_SECONDS = 0.001


def barnabas_command() -> Path:
    """The command line that is installed beside this Python."""
    command = Path(sys.executable).parent / "barnabas"
    if not command.exists():
        raise PeerFailed(f"there is no `{command.name}` beside {sys.executable}: run `make install`")
    return command


class BarnabasPeer(Peer):
    """`settings` become `--set name=value` arguments."""

    name = "barnabas"

    def command(self) -> list[str]:
        settings = [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]
        # Several brokers need as many ports: they find them by themselves and say the first.
        place = ["--port", str(self.port)] if self.brokers == 1 else ["--port", "0", "--brokers", str(self.brokers)]
        return [str(barnabas_command()), "up", *place, "--data-dir", str(self.data_dir), *settings]

    def find_port(self) -> None:
        deadline = time.monotonic() + READY_SECONDS_MAX
        while (found := _READY.search(self.log_path.read_text(errors="replace"))) is None:
            if not self.is_alive():
                raise NotAnswering("the process ended before it said READY")
            if time.monotonic() > deadline:
                raise NotAnswering(f"it did not say READY in {READY_SECONDS_MAX:.0f} s")
            time.sleep(_RETRY_SECONDS)
        self.host, self.port = found[1], int(found[2])


class BarnabasTwo(BarnabasPeer):
    """A column of its own: two brokers, each with half of the partitions, use two cores as one Kafka does."""

    name = "barnabas-2"
    brokers = 2


class BarnabasThree(BarnabasPeer):
    """What rows with three replicas run on."""

    brokers = 3
