"""From the files in a directory to a sound log, whatever a crash has left of them.

After a clean shutdown nothing is scanned: sizes are looked up and the rest is read when it is needed. Otherwise
``log_scan`` checks every batch above the recovery point. Here swaps of segments are finished or undone, strays removed,
and the parts of a log put together. Called by ``PartitionLog.open`` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from barnabas.model.errors import CorruptBatch
from barnabas.storage.batch_file import DELETED, LOG, SUFFIXES, file_name
from barnabas.storage.checkpoints import CHECKPOINT_BYTES_MAX, LEADER_EPOCH_FILE, CorruptCheckpoint
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.log_scan import OFFSET_MAX, LogScan, remove_segments
from barnabas.storage.producer_snapshot import SNAPSHOT, ProducerSnapshots
from barnabas.storage.producers import Producers
from barnabas.storage.replay import rebuild
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments
from barnabas.storage.settings import TopicSettings
from barnabas.wire.batch import HEADER_BYTES, read_header
from barnabas.world.disk import Disk

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
OFFSET_DIGITS: Final = 20


@dataclass(slots=True)
class Loaded:
    """What a log begins with."""

    segments: Segments
    epochs: LeaderEpochs
    producers: Producers
    snapshots: ProducerSnapshots
    log_start_offset: int
    end_offset: int
    recovery_point: int
    is_changed: bool  # files were created, cut or removed
    is_cut: bool  # batches were thrown away


async def load(
    disk: Disk,
    directory: str,
    settings: TopicSettings,
    *,
    log_start_offset: int,
    recovery_point: int,
    was_clean: bool,
    cleaned_offset: int | None,
    now_ms: int,
    on_read: Callable[[int], None] | None = None,
) -> Loaded:
    names = disk.list(directory)
    is_changed = _finish_swaps(disk, directory, names)
    if is_changed:
        names = disk.list(directory)
    found = _segments_of(disk, directory, settings, names)
    epochs = _read_epochs(disk, directory, names, found)
    snapshots = ProducerSnapshots(disk, directory, _offsets(names, SNAPSHOT))
    producers = Producers()
    is_cut = False
    if not was_clean and found:
        scan = LogScan(found, epochs, snapshots, cleaned_offset=cleaned_offset, start=log_start_offset, on_read=on_read)
        is_cut = await scan.run(recovery_point)
    end_offset = found[-1].read_end_offset() if found else log_start_offset
    if found and end_offset < log_start_offset:
        # Only if somebody has removed files by hand. Where the log starts is a promise, so it begins anew there.
        remove_segments(found)
        found.clear()
        epochs.clear()
        end_offset = log_start_offset
    if not found:
        snapshots.keep_between(log_start_offset, log_start_offset)
        found.append(Segment.create(disk, directory, log_start_offset, settings, now_ms=now_ms))
        is_changed = True
    segments = Segments(found)
    for segment in found:
        segment.created_ms = now_ms
    found[-1].close()
    log_start_offset = max(log_start_offset, found[0].base_offset)
    epochs.truncate_end(end_offset)
    epochs.truncate_start(log_start_offset)
    snapshots.remove_strays(segments.base_offsets)
    if was_clean and not snapshots.offsets:
        # No snapshot after a clean shutdown means that there was no producer to remember.
        producers.clear()
    else:
        rebuild(producers, snapshots, segments, start=log_start_offset, end=end_offset)
    point = end_offset if was_clean else min(recovery_point, end_offset)
    return Loaded(
        segments, epochs, producers, snapshots, log_start_offset, end_offset, point, is_changed or is_cut, is_cut
    )


def _offset_of(name: str) -> int | None:
    """The offset that a name begins with; one that begins with none is not ours and stays."""
    digits = name[:OFFSET_DIGITS]
    if len(digits) < OFFSET_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    offset = int(digits)
    return offset if offset <= OFFSET_MAX else None


def _offsets(names: list[str], suffix: str) -> list[int]:
    """The offsets in the names that end so."""
    ours = (name for name in names if name.endswith(suffix) and len(name) == OFFSET_DIGITS + len(suffix))
    return [offset for name in ours if (offset := _offset_of(name)) is not None]


def _segments_of(disk: Disk, directory: str, settings: TopicSettings, names: list[str]) -> list[Segment]:
    bases = _offsets(names, LOG)
    known = set(bases)
    for suffix in SUFFIXES[1:]:
        for offset in _offsets(names, suffix):
            if offset not in known:
                disk.remove(f"{directory}/{file_name(offset, suffix)}")
    return [
        Segment(disk, directory, base, settings, size_bytes=disk.size_bytes(f"{directory}/{file_name(base, LOG)}"))
        for base in bases
    ]


def _read_epochs(disk: Disk, directory: str, names: list[str], segments: list[Segment]) -> LeaderEpochs:
    """The history of epochs as the file has it or, if there is no sound file, as the batches tell it."""
    if LEADER_EPOCH_FILE in names:
        content = disk.read_all(f"{directory}/{LEADER_EPOCH_FILE}", size_bytes_max=CHECKPOINT_BYTES_MAX)
        try:
            return LeaderEpochs.decode(content)
        except CorruptCheckpoint:
            pass
    epochs = LeaderEpochs()
    for segment in segments:
        try:
            for _, header in segment.headers():
                if header.leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.leader_epoch, header.base_offset)
        except CorruptBatch:
            break
        finally:
            segment.close()
    return epochs


def _finish_swaps(disk: Disk, directory: str, names: list[str]) -> bool:
    """Remove what was to be deleted or not yet cleaned, and finish a swap of segments that had begun."""
    names = [name for name in names if _offset_of(name) is not None and name[OFFSET_DIGITS : OFFSET_DIGITS + 1] == "."]
    cleaned = [int(name[:OFFSET_DIGITS]) for name in names if name.endswith(CLEANED)]
    swaps = []
    is_changed = False
    for name in names:
        # A swap above the first unfinished segment belongs to a split that was not completed.
        is_void_swap = name.endswith(SWAP) and bool(cleaned) and int(name[:OFFSET_DIGITS]) >= min(cleaned)
        if name.endswith((DELETED, CLEANED)) or is_void_swap:
            disk.remove(f"{directory}/{name}")
            is_changed = True
        elif name.endswith(SWAP):
            swaps.append(name)
    void = {name[:OFFSET_DIGITS] for name in swaps if name.endswith(LOG + SWAP) and _is_void(disk, directory, name)}
    for name in swaps:
        if name.endswith(LOG + SWAP) and name[:OFFSET_DIGITS] not in void:
            _remove_replaced(disk, directory, name, names)
    for name in swaps:
        path = f"{directory}/{name}"
        if name[:OFFSET_DIGITS] in void:
            disk.remove(path)
        else:
            disk.rename(path, path.removesuffix(SWAP))
    return is_changed or bool(swaps)


def _is_void(disk: Disk, directory: str, swap: str) -> bool:
    """Whether a swap holds no sound batches while what it was made from is still there: then that is better."""
    base = f"{directory}/{swap.removesuffix(SWAP)}"
    return disk.exists(base) and _swap_end(disk, directory, swap) is None


def _swap_end(disk: Disk, directory: str, swap: str) -> int | None:
    """The offset after the last batch of a swapped-in segment; None if it is not one batch after the other."""
    end = int(swap[:OFFSET_DIGITS])
    content = disk.open(f"{directory}/{swap}")
    try:
        position = 0
        while position < content.size_bytes:
            header = read_header(content.read(position, HEADER_BYTES))
            if header.base_offset < end or position + header.size_bytes > content.size_bytes:
                return None
            end, position = header.next_offset, position + header.size_bytes
    except CorruptBatch:
        return None
    finally:
        content.close()
    return end


def _remove_replaced(disk: Disk, directory: str, swap: str, names: list[str]) -> None:
    """The segments that a swapped-in one covers are still there: it was made from them."""
    base, end = int(swap[:OFFSET_DIGITS]), _swap_end(disk, directory, swap)
    for suffix in SUFFIXES:
        for offset in _offsets(names, suffix):
            if end is not None and base <= offset < end:
                disk.remove(f"{directory}/{file_name(offset, suffix)}")
