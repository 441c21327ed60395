"""A broker made of canned answers which lies in one way at a time: slow, with errors, with a gap, with a flipped bit.

It speaks just enough (Metadata 7, ListOffsets 5, Produce 9, Fetch 12; one topic "t" with one partition) for the load
generator, by hand, so that nothing of the product takes part in judging the judge. Used by `test_loadgen.py` alone.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import crc32c

# error 0, topic "t" (compact), partition 0: what the answers to Produce and Fetch have in common.
_TOPIC = b"\x02t"


def batch(base_offset: int, *, is_damaged: bool = False) -> bytes:
    """A record batch of one small record."""
    records = b"\x14\x00\x00\x00\x01\x08abcd\x00"
    body = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + records
    checksum = crc32c.crc32c(body) ^ is_damaged
    return struct.pack(">qiibI", base_offset, len(body) + 9, -1, 2, checksum) + body


class LyingBroker:
    """`with LyingBroker(...) as broker: broker.port`. One thread per connection, all ended with the block."""

    def __init__(
        self,
        *,
        delay_seconds: float = 0.0,
        produce_error: int = 0,
        offsets: tuple[int, ...] = (),
        is_damaged: bool = False,
    ) -> None:
        self._delay_seconds = delay_seconds
        self._produce_error = produce_error
        self._records = b"".join(batch(offset, is_damaged=is_damaged) for offset in offsets)
        self._end = max(offsets, default=-1) + 1
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept)
        self._connections: list[tuple[socket.socket, threading.Thread]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for connection, thread in self._connections:
            thread.join()
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._connections.append((connection, thread))
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        # A reader that stood still goes away with answers unread, and that resets the connection.
        with connection.makefile("rb") as stream, suppress(ConnectionError):
            while len(prefix := stream.read(4)) == 4:
                request = stream.read(struct.unpack(">i", prefix)[0])
                api_key, _, correlation_id = struct.unpack_from(">hhi", request)
                body = struct.pack(">i", correlation_id) + self._answer(api_key)
                connection.sendall(struct.pack(">i", len(body)) + body)

    def _answer(self, api_key: int) -> bytes:
        if api_key == 3:
            host = b"127.0.0.1"
            broker = struct.pack(">iih", 1, 1, len(host)) + host + struct.pack(">ih", self.port, -1)
            partition = struct.pack(">hiiiiii", 0, 0, 1, 0, 0, 0, 0)
            topic = struct.pack(">ihh", 1, 0, 1) + b"t\x00" + struct.pack(">i", 1) + partition
            return struct.pack(">i", 0) + broker + struct.pack(">hi", -1, 1) + topic
        if api_key == 2:
            return struct.pack(">iih", 0, 1, 1) + b"t" + struct.pack(">iihqqi", 1, 0, 0, -1, self._end, 0)
        time.sleep(self._delay_seconds)
        if api_key == 0:
            partition = struct.pack(">ihqqq", 0, self._produce_error, 0, -1, 0) + b"\x01\x00\x00"
            return b"\x00\x02" + _TOPIC + b"\x02" + partition + b"\x00" + struct.pack(">i", 0) + b"\x00"
        assert api_key == 1
        partition = struct.pack(">ihqqq", 0, 0, self._end, self._end, 0) + b"\x00" + struct.pack(">i", -1)
        records = _uvarint(len(self._records) + 1) + self._records
        head = b"\x00" + struct.pack(">ihi", 0, 0, 0)
        return head + b"\x02" + _TOPIC + b"\x02" + partition + records + b"\x00\x00\x00"


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
