"""Protocol Buffers without a registry: the record is the message's bytes.

Needs protobuf, which whoever has a message class has. With a registry use ``registered_protobuf``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.client.serdes.serde import Place, Serde, needed, undecodable, unencodable

if TYPE_CHECKING:
    from google.protobuf.message import Message

    M = TypeVar("M", bound=Message)
else:
    M = TypeVar("M")


class Protobuf(Serde[M]):
    """``Protobuf(Order)`` is the serde of a generated class."""

    def __init__(self, kind: type[M]) -> None:
        self.kind = kind
        message = needed("google.protobuf.message", "protobuf")
        self._refused: tuple[type[Exception], ...] = (message.DecodeError, message.EncodeError, ValueError)

    def encode(self, content: M, place: Place) -> bytes:
        if not isinstance(content, self.kind):
            raise unencodable(content, place, f"it is not a {self.kind.__name__}")
        try:
            encoded: bytes = content.SerializeToString()
        except self._refused as error:
            raise unencodable(content, place, error) from error
        return encoded

    def decode(self, data: bytes, place: Place) -> M:
        try:
            content: Any = self.kind.FromString(data)
        except self._refused as error:
            raise undecodable(data, place, error) from error
        decoded: M = content
        return decoded
