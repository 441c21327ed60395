"""Objects of a type as JSON or MessagePack: msgspec structs, dataclasses, typed dicts, whatever msgspec knows.

What is read is checked against the type. Needs msgspec, which is imported when a serde is made.
"""

from __future__ import annotations

from typing import Literal

from barnabas.client.serdes.serde import Place, Serde, T, needed, undecodable, unencodable


class Struct(Serde[T]):
    """``Struct(Order)`` is the serde of ``Order``."""

    def __init__(self, kind: type[T], *, layout: Literal["json", "msgpack"] = "json") -> None:
        msgspec = needed("msgspec", "structs")
        chosen = msgspec.json if layout == "json" else msgspec.msgpack
        self.kind = kind
        self._encode = chosen.Encoder().encode
        self._decode = chosen.Decoder(kind).decode
        self._refused = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)

    def encode(self, content: T, place: Place) -> bytes:
        if not _is_a(content, self.kind):
            raise unencodable(content, place, f"it is not a {self.kind}")
        try:
            encoded: bytes = self._encode(content)
        except self._refused as error:
            raise unencodable(content, place, error) from error
        return encoded

    def decode(self, data: bytes, place: Place) -> T:
        try:
            decoded: T = self._decode(data)
        except self._refused as error:
            raise undecodable(data, place, error) from error
        return decoded


def _is_a(content: object, kind: type) -> bool:
    try:
        return isinstance(content, kind)
    except TypeError:  # typed dicts, unions and the like cannot be asked
        return True
