"""One connection to a broker that sends any request in any version, and reports a closed connection as an answer."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from barnabas.model.errors import Malformed
from barnabas.wire.frame import decode_response, encode_request
from barnabas.wire.message import Message
from barnabas.wire.messages import response_of
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from conformance.answers.answers import CLOSED, SILENT

SECONDS_MAX = 3.0


class Exchange:
    """``ask`` returns a message, or a sentence if there was none."""

    def __init__(self, address: tuple[str, int], user: str | None = None) -> None:
        self._address = address
        self._user = user
        self._socket: socket.socket | None = None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def ask(self, message: Message, version: int) -> Message | str:
        try:
            if self._socket is None:
                self._connect()
            return self._ask(message, version)
        except TimeoutError:
            self.close()
            return SILENT
        except (ConnectionError, Malformed):
            self.close()
            return CLOSED

    def _connect(self) -> None:
        self._socket = socket.create_connection(self._address, timeout=SECONDS_MAX)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._user is not None:
            self._ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            self._ask(SaslAuthenticateRequest(auth_bytes=f"\0{self._user}\0{self._user}-secret".encode()), 2)

    def _ask(self, message: Message, version: int) -> Message:
        assert self._socket is not None
        parts: Any = encode_request(message, version, correlation_id=1, client_id="judge")
        self._socket.sendall(b"".join(parts))
        (size,) = struct.unpack(">i", self._receive(4))
        assert message.api_key is not None
        _, response = decode_response(response_of(message.api_key), version, self._receive(size))
        return response

    def _receive(self, size: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise ConnectionResetError
            data += piece
        return bytes(data)


Asks = Callable[[Message, int], Message | str]
