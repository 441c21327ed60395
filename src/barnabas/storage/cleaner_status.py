"""What the cleaner is doing and has done, and why a log is not being cleaned: plain facts for people and metrics.

Nothing is decided here; ``cleaner`` fills these in and anybody may read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.storage.compaction import Cleanable


@dataclass(slots=True)
class Round:
    """One cleaning of one log, under way or done."""

    partition: TopicPartition
    first_dirty_offset: int
    end_offset: int  # the bound, and once the map is made where this round ends
    started_ms: int
    ended_ms: int = -1
    step: str = "notes the keys"
    keys: int = 0
    map_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    batches_read: int = 0
    batches_kept: int = 0


@dataclass(slots=True)
class CleanerTotals:
    """All rounds since the start."""

    rounds: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    milliseconds: int = 0
    longest_ms: int = 0

    def add(self, done: Round) -> None:
        duration_ms = done.ended_ms - done.started_ms
        self.rounds += 1
        self.read_bytes += done.read_bytes
        self.written_bytes += done.written_bytes
        self.milliseconds += duration_ms
        self.longest_ms = max(self.longest_ms, duration_ms)


class CleanerStatus(NamedTuple):
    """How one log stands with the cleaner."""

    state: str  # not compacted, disabled, cleaning, due, waiting, clean, failed
    reason: str  # a sentence: why it is not being cleaned, or what is being done
    cleanable: Cleanable | None
    under_way: Round | None
    last: Round | None

    @property
    def sentence(self) -> str:
        """All of it in a line, for people."""
        parts = [f"{self.state}: {self.reason}"]
        if self.last is not None:
            seconds = (self.last.ended_ms - self.last.started_ms) / 1000
            parts.append(
                f"last round up to offset {self.last.end_offset}: {self.last.read_bytes} bytes read, "
                f"{self.last.written_bytes} written, {seconds:.1f} s"
            )
        return "; ".join(parts)
