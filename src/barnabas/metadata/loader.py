"""Turns what the metadata log commits into pictures of the cluster, tells who listens, and knows when to snapshot.

A metadata transaction (KIP-868) is shown as a whole once it ends, and never if it is aborted. Nothing here writes to
the log or decides; ``quorum_controller`` passes on what Raft tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import ImageBuilder, MetadataChanges
from barnabas.metadata.image_difference import difference
from barnabas.metadata.records import decode_record, encode_record
from barnabas.raft.log_view import OffsetAndEpoch

SNAPSHOT_BYTES_DEFAULT: Final = 20 * 1024 * 1024  # metadata.log.max.record.bytes.between.snapshots
SNAPSHOT_INTERVAL_MS_DEFAULT: Final = 60 * 60 * 1000  # metadata.log.max.snapshot.interval.ms

ImageCallback = Callable[[ClusterImage, ClusterImage, MetadataChanges], None]


class SnapshotRules(NamedTuple):
    """After how much of the log, or after what time (0: never), the picture is written down."""

    size_bytes: int = SNAPSHOT_BYTES_DEFAULT
    interval_ms: int = SNAPSHOT_INTERVAL_MS_DEFAULT


class Loader:
    def __init__(self, rules: SnapshotRules, *, now_ms: int) -> None:
        self.image = EMPTY  # what everybody may see
        self.committed = EMPTY  # the same, or further within a transaction
        self.append_time_ms = 0
        self._callbacks: list[ImageCallback] = []
        self._rules = rules
        self._bytes_since_snapshot = 0
        self._snapshot_ms = now_ms

    def on_image(self, callback: ImageCallback) -> Callable[[], None]:
        """Call back with the old picture, the new one and what differs; the answer takes the callback off again."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def load_batch(self, base_offset: int, epoch: int, append_time_ms: int, records: list[bytes]) -> None:
        builder = ImageBuilder(self.committed)
        for offset, record in enumerate(records, base_offset):
            builder.apply(decode_record(record), offset)
        self.accept(builder.build(epoch=epoch), builder.changes, append_time_ms, sum(map(len, records)))

    def accept(self, image: ClusterImage, changes: MetadataChanges, append_time_ms: int, size_bytes: int) -> None:
        """The log has committed what leads from the last picture to this one."""
        was_open = self.committed.transaction_base is not None
        self.committed = image
        self.append_time_ms = append_time_ms
        self._bytes_since_snapshot += size_bytes
        if image.transaction_base is None:
            # Of a transaction over several batches some or all may have been aborted, so what they touched says little.
            self._publish(difference(self.image, image) if was_open else changes)

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, records: Iterable[bytes], *, now_ms: int) -> None:
        """All that was known is replaced by what the snapshot says."""
        offset = snapshot_id.offset - 1
        builder = ImageBuilder(replace(EMPTY, offset=offset))
        for record in records:
            builder.apply(decode_record(record), offset)
        self.committed = builder.build(epoch=snapshot_id.epoch)
        self.has_snapshot(now_ms=now_ms)
        self._publish(difference(self.image, self.committed))

    def _publish(self, changes: MetadataChanges) -> None:
        old, self.image = self.image, self.committed
        for callback in list(self._callbacks):
            callback(old, self.image, changes)

    def is_snapshot_due(self, *, now_ms: int) -> bool:
        if self.committed.transaction_base is not None or not self._bytes_since_snapshot:
            return False
        return (
            self._bytes_since_snapshot >= self._rules.size_bytes
            or 0 < self._rules.interval_ms <= now_ms - self._snapshot_ms
        )

    def has_snapshot(self, *, now_ms: int) -> None:
        self._bytes_since_snapshot = 0
        self._snapshot_ms = now_ms


def snapshot_records(image: ClusterImage) -> Iterator[bytes]:
    return map(encode_record, image.records())
