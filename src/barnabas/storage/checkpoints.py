"""Kafka's checkpoint files: a version line, a count line, then one entry to a line.

Here they are only read and written as text; who keeps which offset is known to the store and the log. A file that
makes no sense is :class:`CorruptCheckpoint`, and its reader decides what that costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

VERSION: Final = 0
CHECKPOINT_BYTES_MAX: Final = 64 * 1024 * 1024

RECOVERY_POINT_FILE: Final = "recovery-point-offset-checkpoint"
LOG_START_FILE: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE: Final = "replication-offset-checkpoint"
CLEANER_FILE: Final = "cleaner-offset-checkpoint"
LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"


class CorruptCheckpoint(BarnabasError):
    """A checkpoint file that does not follow its own format."""


def encode_lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in (str(VERSION), str(len(entries)), *entries)).encode()


def decode_lines(content: bytes, *, columns: int) -> list[list[str]]:
    """The entries, each split into its columns."""
    if not content.endswith(b"\n"):
        # A file that was torn in its last number would otherwise tell of another one.
        raise CorruptCheckpoint("the last line has no end")
    try:
        lines = content.decode().splitlines()
        version, count = int(lines[0]), int(lines[1])
    except (UnicodeDecodeError, ValueError, IndexError) as error:
        raise CorruptCheckpoint("a checkpoint starts with its version and its count") from error
    if version != VERSION:
        raise CorruptCheckpoint(f"checkpoint version {version} is not known")
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != count:
        raise CorruptCheckpoint(f"{count} entries were announced and {len(entries)} are there")
    if any(len(entry) != columns for entry in entries):
        raise CorruptCheckpoint(f"an entry does not have {columns} columns")
    return entries


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return encode_lines(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def decode_offsets(content: bytes) -> dict[TopicPartition, int]:
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in decode_lines(content, columns=3)
        }
    except ValueError as error:
        raise CorruptCheckpoint("a partition or an offset is not a number") from error
