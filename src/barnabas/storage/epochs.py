"""The history of leader epochs of one log: which epoch began at which offset.

Followers find the point where their log parts from the leader's through ``end_of_epoch``. The history lives in memory
and as ``leader-epoch-checkpoint``; the log writes the file before the first batch of an epoch, and syncs it before it
advances its recovery point. So recovery can tell a batch whose epoch has rotted: no checksum covers that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from barnabas.model.ids import NO_LEADER_EPOCH, NO_OFFSET
from barnabas.storage.checkpoints import CorruptCheckpoint, decode_lines, encode_lines

EPOCH_COLUMNS: Final = 2


class LeaderEpochs:
    __slots__ = ("_epochs", "_starts", "is_dirty", "is_unwritten", "latest_epoch")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest_epoch = NO_LEADER_EPOCH
        self.is_unwritten = False  # memory knows something the file does not
        self.is_dirty = False  # or that the device does not

    @classmethod
    def decode(cls, content: bytes) -> LeaderEpochs:
        epochs = cls()
        try:
            for epoch, start_offset in decode_lines(content, columns=EPOCH_COLUMNS):
                epochs.assign(int(epoch), int(start_offset))
        except ValueError as error:
            raise CorruptCheckpoint("an epoch or an offset is not a number") from error
        epochs.is_dirty = epochs.is_unwritten = False
        return epochs

    @classmethod
    def of(cls, entries: list[tuple[int, int]]) -> LeaderEpochs:
        epochs = cls()
        for epoch, start_offset in entries:
            epochs.assign(epoch, start_offset)
        return epochs

    def encode(self) -> bytes:
        return encode_lines(f"{epoch} {start}" for epoch, start in self.entries())

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """An epoch begins at an offset. Entries that contradict it came from a leader that was overruled: they go."""
        if epoch < 0 or start_offset < 0:
            raise CorruptCheckpoint(f"epoch {epoch} cannot begin at {start_offset}")
        if epoch == self.latest_epoch and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self._changed()

    def end_of(self, epoch: int, *, end_offset: int) -> tuple[int, int]:
        """The largest known epoch not above this one and where it ends; (−1, −1) if that cannot be said."""
        if epoch == NO_LEADER_EPOCH:
            return NO_LEADER_EPOCH, NO_OFFSET
        if epoch == self.latest_epoch:
            return epoch, end_offset
        above = bisect_right(self._epochs, epoch)
        if above == len(self._epochs):
            return NO_LEADER_EPOCH, NO_OFFSET
        # Below the first known epoch the records are gone: the asker is sent to where our history begins.
        found = self._epochs[above - 1] if above else epoch
        return found, self._starts[above]

    def epoch_at(self, offset: int) -> int:
        """The epoch an offset was written in, or −1."""
        slot = bisect_right(self._starts, offset) - 1
        return self._epochs[slot] if slot >= 0 else NO_LEADER_EPOCH

    def truncate_end(self, end_offset: int) -> None:
        """Forget the epochs that began at or above the new end of the log."""
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self._changed()

    def truncate_start(self, start_offset: int) -> None:
        """The log now starts here: the epoch of this offset starts with it and older ones are forgotten."""
        drop = bisect_right(self._starts, start_offset) - 1
        if drop >= 0 and self._starts[drop] != start_offset:
            self._starts[drop] = start_offset
            self._changed()
        if drop > 0:
            del self._epochs[:drop], self._starts[:drop]
            self._changed()

    def clear(self) -> None:
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self._changed()

    def _changed(self) -> None:
        self.latest_epoch = self._epochs[-1] if self._epochs else NO_LEADER_EPOCH
        self.is_dirty = self.is_unwritten = True
