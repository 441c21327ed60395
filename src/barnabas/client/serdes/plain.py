"""Serdes that need nothing: bytes, text, and numbers in the layout of Java's serializers."""

from __future__ import annotations

import struct
from typing import Final

from barnabas.client.serdes.serde import Place, Serde, T, undecodable, unencodable


class _Bytes(Serde[bytes]):
    def encode(self, content: bytes, place: Place) -> bytes:
        if not isinstance(content, bytes | bytearray | memoryview):
            raise unencodable(content, place, "it is not bytes")
        return content

    def decode(self, data: bytes, place: Place) -> bytes:
        return data


class _Str(Serde[str]):
    def encode(self, content: str, place: Place) -> bytes:
        try:
            return content.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise unencodable(content, place, error) from error

    def decode(self, data: bytes, place: Place) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise undecodable(data, place, error) from error


class _Number(Serde[T]):
    def __init__(self, code: str) -> None:
        self._layout = struct.Struct(code)

    def encode(self, content: T, place: Place) -> bytes:
        try:
            return self._layout.pack(content)
        except struct.error as error:
            raise unencodable(content, place, error) from error

    def decode(self, data: bytes, place: Place) -> T:
        try:
            number: T = self._layout.unpack(data)[0]
        except struct.error as error:
            raise undecodable(data, place, error) from error
        return number


BYTES: Final[Serde[bytes]] = _Bytes()
STR: Final[Serde[str]] = _Str()
INTEGER: Final[Serde[int]] = _Number(">i")
LONG: Final[Serde[int]] = _Number(">q")
DOUBLE: Final[Serde[float]] = _Number(">d")
