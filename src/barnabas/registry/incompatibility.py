"""One reason why two schemas are incompatible, and the levels of compatibility."""

from __future__ import annotations

from typing import NamedTuple


class Incompatibility(NamedTuple):
    kind: str
    path: str
    description: str

    def __str__(self) -> str:
        return f"{{errorType:'{self.kind}', description:'{self.description}', additionalInfo:'{self.path or '/'}'}}"


class InvalidSchema(Exception):
    """The text is not a schema of its kind; the message says why."""
