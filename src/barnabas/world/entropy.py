"""What a source of randomness is: real in production, seeded in the simulator."""

from __future__ import annotations

from typing import Protocol

from barnabas.model.ids import Uuid


class Entropy(Protocol):
    def token(self, size_bytes: int) -> bytes:
        """Bytes nobody can guess."""

    def below(self, limit: int) -> int:
        """A number from 0 to ``limit`` - 1."""

    def uuid(self) -> Uuid:
        """A random id that is not reserved and whose text does not start with a dash."""
