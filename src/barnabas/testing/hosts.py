"""The machines of a simulation: which of them a piece of code runs on, and whether that one is alive.

A host is a label in the context that tasks and callbacks carry, so code need not know where it runs. A paused host
does nothing until it goes on, as a stopped process; a dead one never does anything again, and its name may be used by
a new one. The loop asks before it runs anything; the network asks who speaks.
"""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import Final

DEFAULT_HOST: Final = "127.0.0.1"


@dataclass(eq=False, slots=True)
class Host:
    """One life of a machine."""

    name: str
    is_alive: bool = True
    is_paused: bool = False

    @property
    def is_halted(self) -> bool:
        return self.is_paused or not self.is_alive


_HOST: Final[contextvars.ContextVar[Host]] = contextvars.ContextVar("host")


class Hosts:
    """The living hosts by name; made when first named."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self.any_halted = False  # nobody needs to be asked for while this is false

    def get(self, name: str) -> Host:
        if name not in self._hosts:
            self._hosts[name] = Host(name)
        return self._hosts[name]

    def current(self) -> Host:
        """Where the running code runs."""
        return _HOST.get(None) or self.get(DEFAULT_HOST)

    def context(self, name: str) -> contextvars.Context:
        """A context for code that runs on a host."""
        context = contextvars.copy_context()
        context.run(_HOST.set, self.get(name))
        return context

    def kill(self, name: str) -> Host:
        """End this life; the next use of the name begins another."""
        host = self.get(name)
        host.is_alive = False
        self.any_halted = True
        del self._hosts[name]
        return host

    def pause(self, name: str) -> None:
        self.get(name).is_paused = True
        self.any_halted = True

    def resume(self, name: str) -> None:
        self.get(name).is_paused = False


def host_of(context: contextvars.Context) -> Host | None:
    return context.get(_HOST)
