"""What Kafka's `kafka-storage format` has left for the first start: users that must be there before anybody signs in.

The tool writes them to ``bootstrap.checkpoint`` in the first directory, as batches of metadata records. A new cluster
takes them over with its own first records; one that has records already does not look here. Feature levels are not
taken from it: a new cluster begins with this release's. Called by the assembly of a node.
"""

from __future__ import annotations

from typing import Final

from barnabas.metadata.records import UserScramCredentialRecord, decode_record
from barnabas.model.errors import BarnabasError, CorruptBatch, Malformed
from barnabas.wire.batch import HEADER_BYTES, crc_matches, read_header
from barnabas.wire.message import Message
from barnabas.wire.records import decode_batch
from barnabas.world.disk import Disk

BOOTSTRAP_FILE: Final = "bootstrap.checkpoint"
BOOTSTRAP_BYTES_MAX: Final = 4 * 1024 * 1024


class CorruptBootstrap(BarnabasError):
    """The file is not what the tool writes."""


def formatted_records(disk: Disk, directory: str) -> list[Message]:
    """The users in the file of this directory; none if there is no file."""
    path = f"{directory}/{BOOTSTRAP_FILE}"
    if not disk.exists(path):
        return []
    if disk.size_bytes(path) > BOOTSTRAP_BYTES_MAX:
        raise CorruptBootstrap(f"{path} is larger than {BOOTSTRAP_BYTES_MAX} bytes")
    file = disk.open(path)
    try:
        content = bytes(file.read(0, file.size_bytes))
    finally:
        file.close()
    try:
        return [record for record in _records(content) if isinstance(record, UserScramCredentialRecord)]
    except Malformed as error:
        raise CorruptBootstrap(f"{path} cannot be read: {error}") from error


def _records(content: bytes) -> list[Message]:
    found: list[Message] = []
    position = 0
    while position < len(content):
        header = read_header(content[position : position + HEADER_BYTES])
        batch = content[position : position + header.size_bytes]
        if len(batch) < header.size_bytes or not crc_matches(batch, 0, header):
            raise CorruptBatch(f"a batch fails its checksum at byte {position}")
        if not header.is_control:
            found += [decode_record(record.value or b"") for record in decode_batch(batch)]
        position += header.size_bytes
    return found
