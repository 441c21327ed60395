"""The smallest Kafka client there is: it asks ApiVersions and waits for the answer.

It tells when a broker is up, in the same way for every peer and without the weight of a client library. It decodes
nothing of the answer but the correlation id. Called by the peers and by the start-up workload.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

_CORRELATION_ID = 0x5EED
# ApiVersions (key 18), version 0, with an empty client id and no body: every broker ever made answers it.
_REQUEST = struct.pack(">ihhih", 10, 18, 0, _CORRELATION_ID, 0)
_RETRY_SECONDS = 0.002


class NotAnswering(Exception):
    """The broker did not answer in time."""


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def answers(host: str, port: int, *, timeout_seconds: float = 2.0) -> bool:
    """Whether a broker at this address answers ApiVersions now."""
    try:
        with socket.create_connection((host, port), timeout=timeout_seconds) as connection:
            connection.sendall(_REQUEST)
            answer = b""
            while len(answer) < 8:
                piece = connection.recv(4096)
                if not piece:
                    return False
                answer += piece
    except OSError:
        return False
    return struct.unpack_from(">i", answer, 4) == (_CORRELATION_ID,)


def wait_until_answering(host: str, port: int, *, alive: Callable[[], bool], timeout_seconds: float) -> None:
    """Returns as soon as the broker answers; gives up when its process died or the time is over."""
    deadline = time.monotonic() + timeout_seconds
    while not answers(host, port):
        if not alive():
            raise NotAnswering(f"the process ended before it answered at {host}:{port}")
        if time.monotonic() > deadline:
            raise NotAnswering(f"no answer at {host}:{port} after {timeout_seconds:.0f} s")
        time.sleep(_RETRY_SECONDS)
