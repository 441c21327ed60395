"""What Spark's processes ask the driver: a socket in a directory that only this user can read, one thread each.

Spark keeps a process of its own for each source, and makes sinks anew for each batch. They hold nothing: lanes,
plugins and checkpoints live in the driver, so that a change of a connector needs no restart of a query.
"""

from __future__ import annotations

import tempfile
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Final

from barnabas.connect.errors import ConnectError

ADDRESS_BYTES_MAX: Final = 107  # of Linux


class Host:
    """Serves functions by name; arguments and answers are pickled."""

    def __init__(self, directory: Path) -> None:
        """Listen in a directory, or in a temporary one if its name is too long for the address of a socket."""
        path = str(directory / "host")
        self.path = path if len(path.encode()) <= ADDRESS_BYTES_MAX else f"{tempfile.mkdtemp(prefix='barnabas-')}/host"
        self._functions: dict[str, Callable[..., Any]] = {}
        self._listener = Listener(self.path, family="AF_UNIX")
        self._thread = threading.Thread(target=self._accept, name="connect-host", daemon=True)

    def offer(self, name: str, function: Callable[..., Any]) -> None:
        """Serve a function."""
        self._functions[name] = function

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="connect-host-call", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):
            while True:
                name, arguments = connection.recv()
                try:
                    answer: tuple[bool, Any] = (True, self._functions[name](*arguments))
                except Exception as error:  # noqa: BLE001 - goes to the caller, whose query fails with it
                    answer = (False, (str(error), traceback.format_exc(), _is_retriable(error)))
                connection.send(answer)

    def close(self) -> None:
        """Stop serving."""
        self._listener.close()


def _is_retriable(error: BaseException) -> bool:
    return bool(getattr(error, "retriable", False)) or type(error).__name__ == "RetriableError"


class HostFailed(ConnectError):
    """The driver could not answer."""


def call(path: str, name: str, *arguments: Any) -> Any:
    """Call a function of the driver from one of Spark's processes."""
    with Client(path, family="AF_UNIX") as connection:
        connection.send((name, arguments))
        is_good, answer = connection.recv()
    if not is_good:
        message, trace, is_retriable = answer
        mark = "RetriableError: " if is_retriable else ""
        raise HostFailed(f"{mark}{message}\n{trace}")
    return answer
