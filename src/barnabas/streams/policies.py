"""Error policies: what happens to a record that cannot be read, processed or written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Continue", "DeadLetter", "ErrorPolicy", "Fail"]


@dataclass(frozen=True)
class Fail:
    """Stop the application with an error that names the node and the record. The default."""


@dataclass(frozen=True)
class Continue:
    """Log the error, drop the record and go on."""


@dataclass(frozen=True)
class DeadLetter:
    """Write the input record to a dead letter topic with the error in its headers, drop it and go on.

    topic: name of the dead letter topic; it must exist or be created automatically.
    """

    topic: str


ErrorPolicy: TypeAlias = Fail | Continue | DeadLetter
