"""Messages to systemd (``Type=notify``): the broker is ready, reloads or stops. Without systemd nothing is sent."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

VARIABLE: Final = "NOTIFY_SOCKET"


def notify(*assignments: str) -> None:
    """Send ``READY=1``, ``STOPPING=1`` or ``STATUS=…`` to the service manager that started this process, if any."""
    address = os.environ.get(VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    if address[0] == "@":  # an abstract socket
        address = "\0" + address[1:]
    # The broker runs without its service manager as well.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.connect(address)
        sender.send("\n".join(assignments).encode())
