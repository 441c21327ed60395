"""What a source of randomness is: real in production, seeded in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.model.ids import UUID_BYTES, Uuid


class Entropy(Protocol):
    def token(self, size_bytes: int) -> bytes:
        """Bytes nobody can guess."""

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1."""

    def uuid(self) -> Uuid:
        """A random id that is not reserved and whose text does not start with a dash."""


def random_uuid(token: Callable[[int], bytes]) -> Uuid:
    """A version 4 id made of ``token``'s bytes, drawn again while its text starts with a dash (command lines choke)."""
    while True:
        raw = bytearray(token(UUID_BYTES))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        uuid = Uuid(raw)
        if not str(uuid).startswith("-"):
            return uuid
