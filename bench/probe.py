"""The smallest Kafka client there is: it asks ApiVersions and waits for the answer.

It tells when a broker is up and what it serves, in the same way for every peer and without the weight of a client
library. Called by the peers, by the start-up workload and by the judges.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CORRELATION_ID = 0x5EED
# ApiVersions (key 18), version 0, with an empty client id and no body: every broker ever made answers it.
_REQUEST = struct.pack(">ihhih", 10, 18, 0, _CORRELATION_ID, 0)
_RETRY_SECONDS = 0.002


class NotAnswering(Exception):
    """The broker did not answer, or not in time."""


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def answers(host: str, port: int, *, timeout_seconds: float = 2.0) -> bool:
    """Whether a broker at this address answers ApiVersions now."""
    try:
        with _asked(host, port, timeout_seconds) as connection:
            return struct.unpack_from(">i", _received(connection, 8), 4) == (_CORRELATION_ID,)
    except (OSError, NotAnswering):
        return False


def offered_apis(host: str, port: int, *, timeout_seconds: float = 10.0) -> frozenset[int]:
    """The keys of the requests that a broker says it serves."""
    with _asked(host, port, timeout_seconds) as connection:
        (size_bytes,) = struct.unpack(">i", _received(connection, 4))
        answer = _received(connection, size_bytes)
    # The correlation id, an error, a count; then a key with its versions each.
    return frozenset(key for key, _, _ in struct.iter_unpack(">hhh", answer[10:]))


@contextmanager
def _asked(host: str, port: int, timeout_seconds: float) -> Iterator[socket.socket]:
    with socket.create_connection((host, port), timeout=timeout_seconds) as connection:
        connection.sendall(_REQUEST)
        yield connection


def _received(connection: socket.socket, size_bytes: int) -> bytes:
    answer = b""
    while len(answer) < size_bytes:
        piece = connection.recv(size_bytes - len(answer))
        if not piece:
            raise NotAnswering("the broker hung up")
        answer += piece
    return answer


def wait_until_answering(host: str, port: int, *, alive: Callable[[], bool], timeout_seconds: float) -> None:
    """Returns as soon as the broker answers; gives up when its process died or the time is over."""
    deadline = time.monotonic() + timeout_seconds
    while not answers(host, port):
        if not alive():
            raise NotAnswering(f"the process ended before it answered at {host}:{port}")
        if time.monotonic() > deadline:
            raise NotAnswering(f"no answer at {host}:{port} after {timeout_seconds:.0f} s")
        time.sleep(_RETRY_SECONDS)
