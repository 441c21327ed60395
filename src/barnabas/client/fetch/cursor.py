"""One partition being read: how far it was read, what was fetched ahead, and what a chunk's records are.

No requests here: the fetcher adds chunks, the consumer takes records out of them, batch by batch, so that nothing is
decoded before somebody wants it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.client.fetch.epochs import EpochStart, EpochTrail
from barnabas.client.fetch.isolation import Visibility
from barnabas.client.fetch.truncation import EpochEnd
from barnabas.client.record import ConsumerRecord
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.errors import BarnabasError, CorruptBatch, Malformed
from barnabas.model.ids import NO_BROKER, NO_LEADER_EPOCH, NO_OFFSET, TopicPartition, Uuid
from barnabas.wire.batch import BatchHeader, crc_matches, iterate
from barnabas.wire.columns import to_arrow
from barnabas.wire.records import OFFSET_MAX, decode_batch, decode_placed, payload_of
from barnabas.world.disk import Buffer

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.scan.needles import Probe


UNVALIDATED: Final = -2  # no leader's epoch, not even one that is not known

__all__ = ["Chunk", "ConsumerRecord", "Cursor"]


class Chunk:
    """What one fetch brought for a partition."""

    __slots__ = ("_batches", "_buffer", "_visibility", "next_offset", "size_bytes")

    def __init__(self, buffer: Buffer, visibility: Visibility) -> None:
        self._buffer = buffer
        self._batches = iterate(buffer)
        self._visibility = visibility
        self.size_bytes = len(buffer)
        self.next_offset = NO_OFFSET  # behind its last batch

    def next(
        self, partition: TopicPartition, settings: ConsumerSettings, probe: Probe | None = None
    ) -> tuple[BatchHeader, list[ConsumerRecord]] | None:
        """The next batch with the records that may be seen; None at the end of the chunk.

        A batch in which ``probe`` finds that nothing can match has no records.
        """
        found = next(self._batches, None)
        if found is None:
            return None
        position, header = found
        if settings.check_crcs and not crc_matches(self._buffer, position, header):
            raise CorruptBatch(f"{partition}: the batch at offset {header.base_offset} fails its checksum")
        if self._visibility.shows(header):
            if probe is not None:
                payload = payload_of(self._buffer, position, header, size_bytes_max=settings.decompressed_max_bytes)
                if not probe.may_match(payload):
                    probe.skipped += header.record_count
                    return header, []
            return header, decode_placed(
                self._buffer,
                position,
                header,
                ConsumerRecord,
                partition,
                size_bytes_max=settings.decompressed_max_bytes,
            )
        if header.is_control:
            for record in decode_batch(self._buffer, position, size_bytes_max=settings.decompressed_max_bytes):
                self._visibility.marker(header, record)
        return header, []

    def columns(
        self,
        partition: TopicPartition,
        settings: ConsumerSettings,
        *,
        start_offset: int,
        end_offset: int | None,
        with_headers: bool,
        probe: Probe | None = None,
    ) -> pyarrow.RecordBatch:
        """All records of the chunk that may be seen, within these offsets, without an object for each."""
        hidden = self._hidden(settings)
        if probe is not None:
            hidden |= self._unmatched(settings, probe)
        return to_arrow(
            self._buffer,
            topic=partition.topic,
            partition=partition.partition,
            start_offset=start_offset,
            end_offset=OFFSET_MAX if end_offset is None else end_offset,
            with_headers=with_headers,
            check_crcs=settings.check_crcs,
            keep=(lambda header: header.base_offset not in hidden) if hidden else None,
            size_bytes_max=settings.decompressed_max_bytes,
        )

    def _unmatched(self, settings: ConsumerSettings, probe: Probe) -> set[int]:
        """Base offsets of batches in which nothing can match."""
        found: set[int] = set()
        for position, header in iterate(self._buffer):
            payload = payload_of(self._buffer, position, header, size_bytes_max=settings.decompressed_max_bytes)
            if not header.is_control and not probe.may_match(payload):
                probe.skipped += header.record_count
                found.add(header.base_offset)
        return found

    def _hidden(self, settings: ConsumerSettings) -> set[int]:
        """Base offsets of batches that were aborted."""
        visibility = self._visibility.afresh()
        hidden: set[int] = set()
        if visibility is None:
            return hidden
        for position, header in iterate(self._buffer):
            if visibility.shows(header):
                continue
            if header.is_control:
                for record in decode_batch(self._buffer, position, size_bytes_max=settings.decompressed_max_bytes):
                    visibility.marker(header, record)
            else:
                hidden.add(header.base_offset)
        return hidden


class Cursor:
    __slots__ = (
        "_chunks",
        "_next_offset",
        "_ready",
        "_settings",
        "_taken",
        "_trail",
        "closest_replica",
        "closest_until",
        "end_offset",
        "error",
        "fetch_offset",
        "high_watermark",
        "is_paused",
        "last_stable_offset",
        "log_start_offset",
        "not_before",
        "partition",
        "position",
        "probe",
        "seeks",
        "topic_id",
        "valid_epoch",
    )

    def __init__(self, partition: TopicPartition, settings: ConsumerSettings) -> None:
        self.partition = partition
        self.position = NO_OFFSET  # of the next record to hand out; NO_OFFSET until the start is resolved
        self.fetch_offset = NO_OFFSET  # of the next record to ask for
        self.end_offset: int | None = None  # where reading stops, if it does
        self.high_watermark = NO_OFFSET
        self.last_stable_offset = NO_OFFSET
        self.log_start_offset = NO_OFFSET
        self.is_paused = False
        self.closest_replica = NO_BROKER  # where the leader has sent us to read
        self.closest_until = 0.0
        self.not_before = 0.0
        self.error: BarnabasError | None = None  # raised by the next poll
        self.probe: Probe | None = None  # skips batches without a match
        self.seeks = 0  # an answer to a fetch from before the last seek is thrown away
        self.topic_id: Uuid | None = None
        self.valid_epoch = UNVALIDATED  # of the leader whose log is known to have what was read
        self._trail = EpochTrail()
        self._settings = settings
        self._chunks: deque[Chunk] = deque()
        self._ready: list[ConsumerRecord] | None = None  # the batch that is being handed out
        self._taken = 0  # how many of them were
        self._next_offset = NO_OFFSET  # behind the batch that is being handed out

    def seek(self, offset: int, leader_epoch: int = NO_LEADER_EPOCH) -> None:
        """Go on at an offset. If the epoch of the record before it is known, the leader is asked if it has that."""
        self._trail.begin(offset, leader_epoch)
        self.valid_epoch = UNVALIDATED
        self._move(offset)

    def rewind(self, offset: int) -> None:
        """Go back to something that was read."""
        self._trail.begin(offset, self.epoch_before(offset))
        self._move(offset)

    def _move(self, offset: int) -> None:
        self.position = self.fetch_offset = offset
        self.error = None
        self.seeks += 1
        self._chunks.clear()
        self._ready = None

    @property
    def is_at_end(self) -> bool:
        return self.end_offset is not None and self.position >= self.end_offset

    @property
    def buffered_bytes(self) -> int:
        return sum(chunk.size_bytes for chunk in self._chunks)

    def wants_fetch(self, now: float) -> bool:
        """One chunk ahead of the one that is being read."""
        if self.position == NO_OFFSET or self.is_paused or self.error is not None or now < self.not_before:
            return False
        if self.end_offset is not None and self.fetch_offset >= self.end_offset:
            return False
        return len(self._chunks) < 2

    # --- leader epochs --------------------------------------------------------------------------------------------

    def epoch_before(self, offset: int) -> int:
        """The leader epoch of the record before an offset, if that was read here."""
        return self._trail.before(offset) if offset <= self.fetch_offset else NO_LEADER_EPOCH

    def is_valid_in(self, leader_epoch: int) -> bool:
        """Whether this leader's log is known to have what was read; without epochs there is nothing to compare."""
        if self.valid_epoch == leader_epoch:
            return True
        if leader_epoch >= 0 and self.epoch_before(self.fetch_offset) >= 0:
            return False
        self.valid_epoch = leader_epoch
        return True

    def confirm(self, leader_epoch: int, end: EpochEnd) -> None:
        """The leader has what was handed out; what was fetched ahead is fetched again if it has not all of that."""
        self._trail.cap(end.epoch)
        self.valid_epoch = leader_epoch
        if end.offset < self.fetch_offset:
            self.rewind(self.position)

    def is_of(self, topic_id: Uuid) -> None:
        """A topic that was made anew under the old name has other records: their epochs say nothing about ours."""
        if self.topic_id not in (None, topic_id):
            self.forget_epochs()
        self.topic_id = topic_id

    def forget_epochs(self) -> None:
        self._trail.begin(self.fetch_offset, NO_LEADER_EPOCH)

    # --- records --------------------------------------------------------------------------------------------------

    def add(self, chunk: Chunk, *, next_offset: int, epochs: Iterable[EpochStart] = ()) -> None:
        self._trail.extend(epochs)
        chunk.next_offset = next_offset
        self._chunks.append(chunk)
        self.fetch_offset = next_offset

    def take(self, count_max: int) -> list[ConsumerRecord]:
        """Records in order, as far as they are here; the position moves behind them."""
        taken: list[ConsumerRecord] = []
        while len(taken) < count_max and not self.is_at_end and (self._ready is not None or self._advance()):
            ready = self._ready
            assert ready is not None
            end = self._taken + count_max - len(taken)
            if end < len(ready):
                taken += ready[self._taken : end]
                self._taken = end
                self.position = taken[-1].offset + 1
                continue
            taken = ready if not taken and not self._taken else taken + ready[self._taken :]
            # Compaction may have removed the batch's last records; their offsets are behind us all the same.
            self.position = max(self.position, self._next_offset)
            self._ready = None
        end_offset = self.end_offset
        if end_offset is not None and self.position > end_offset:
            self.position = end_offset
            while taken and taken[-1].offset >= end_offset:
                taken.pop()
        return taken

    def take_columns(self, *, with_headers: bool) -> list[pyarrow.RecordBatch]:
        """Everything that is here as columns; the position moves behind it."""
        taken: list[pyarrow.RecordBatch] = []
        self._ready = None
        try:
            while self._chunks:
                chunk = self._chunks[0]
                taken.append(
                    chunk.columns(
                        self.partition,
                        self._settings,
                        start_offset=self.position,
                        end_offset=self.end_offset,
                        with_headers=with_headers,
                        probe=self.probe,
                    )
                )
                self._chunks.popleft()
                self.position = max(self.position, chunk.next_offset)
                if self.is_at_end:
                    break
        except Malformed as error:
            self.rewind(self.position)
            self.error = error
        if self.end_offset is not None and self.position > self.end_offset:
            self.position = self.end_offset
        return taken

    def _advance(self) -> bool:
        """Open the next batch. An empty or hidden one moves the position too: its offsets are taken."""
        while self._chunks:
            try:
                found = self._chunks[0].next(self.partition, self._settings, self.probe)
            except Malformed as error:
                # Whoever goes on after this error asks for the same batch again: nothing is skipped in silence.
                self.rewind(self.position)
                self.error = error
                return False
            if found is None:
                self._chunks.popleft()
                continue
            header, records = found
            start = self.position
            fresh = [record for record in records if record.offset >= start] if header.base_offset < start else records
            if fresh:
                self._ready, self._taken = fresh, 0
                self._next_offset = header.next_offset
                return True
            self.position = max(start, header.next_offset)
            if self.is_at_end:
                return False
        return False
