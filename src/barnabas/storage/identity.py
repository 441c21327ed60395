"""Who a directory belongs to: ``meta.properties``, ``partition.metadata`` and the mark of a clean shutdown.

Small text files in Kafka's formats, read and written here and judged by the store. A node never takes a directory
that names another cluster or another node.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final, NamedTuple

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import Uuid
from barnabas.world.disk import Disk, replace

META_PROPERTIES_FILE: Final = "meta.properties"
PARTITION_METADATA_FILE: Final = "partition.metadata"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"
META_PROPERTIES_VERSION: Final = 1
IDENTITY_BYTES_MAX: Final = 64 * 1024

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class WrongDirectory(BarnabasError):
    """A directory that belongs to another node or cluster, or whose identity cannot be read."""


class MetaProperties(NamedTuple):
    cluster_id: str
    node_id: int
    directory_id: Uuid | None


def decode_meta_properties(content: bytes) -> MetaProperties:
    values = _decode_properties(content)
    try:
        version = int(values.get("version", "-1"))
        node_id = int(values["node.id"] if version >= META_PROPERTIES_VERSION else values["broker.id"])
        cluster_id = values["cluster.id"]
        directory_id = Uuid.parse(values["directory.id"]) if "directory.id" in values else None
    except (KeyError, ValueError) as error:
        raise WrongDirectory(
            f"what it says of cluster.id, node.id and directory.id is not complete ({error})"
        ) from error
    return MetaProperties(cluster_id, node_id, directory_id)


def encode_meta_properties(properties: MetaProperties) -> bytes:
    lines = [
        f"version={META_PROPERTIES_VERSION}",
        f"cluster.id={properties.cluster_id}",
        f"node.id={properties.node_id}",
    ]
    if properties.directory_id is not None:
        lines.append(f"directory.id={properties.directory_id}")
    return "".join(f"{line}\n" for line in lines).encode()


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    path = f"{directory}/{META_PROPERTIES_FILE}"
    if not disk.exists(path):
        return None
    content = disk.read_all(path, size_bytes_max=IDENTITY_BYTES_MAX)
    try:
        return decode_meta_properties(content)
    except WrongDirectory as error:
        raise WrongDirectory(f"{path}: {error}. Restore the file, or give this node another directory.") from error


async def write_meta_properties(disk: Disk, directory: str, properties: MetaProperties) -> None:
    await replace(disk, f"{directory}/{META_PROPERTIES_FILE}", encode_meta_properties(properties))


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {topic_id}".encode()


def decode_partition_metadata(content: bytes) -> Uuid | None:
    """The topic's id, or None for a file that a crash has left unfinished: the controller knows the id."""
    try:
        values = dict(line.split(": ", 1) for line in content.decode().splitlines() if line.strip())
        return Uuid.parse(values["topic_id"].strip())
    except (UnicodeDecodeError, ValueError, KeyError):
        return None


def read_partition_metadata(disk: Disk, directory: str) -> Uuid | None:
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    if not disk.exists(path):
        return None
    return decode_partition_metadata(disk.read_all(path, size_bytes_max=IDENTITY_BYTES_MAX))


def write_partition_metadata(disk: Disk, directory: str, topic_id: Uuid) -> None:
    """Written without waiting for the device: the log syncs it with its first records."""
    path = f"{directory}/{PARTITION_METADATA_FILE}"
    disk.remove(path)
    file = disk.open(path, create=True)
    try:
        file.append(encode_partition_metadata(topic_id))
    finally:
        file.close()


def encode_clean_shutdown(broker_epoch: int, unclean: Collection[str] = ()) -> bytes:
    """``unclean`` are the directories of logs that could not be closed; Kafka ignores the field."""
    content: dict[str, object] = {"version": 0, "brokerEpoch": broker_epoch}
    if unclean:
        content["unclean"] = sorted(unclean)
    return json.dumps(content, separators=(",", ":")).encode()


def decode_clean_shutdown(content: bytes) -> tuple[int, frozenset[str]]:
    """The broker epoch of the last clean shutdown, or −1, and the directories of logs that it could not close."""
    try:
        found = json.loads(content)
        return int(found["brokerEpoch"]), frozenset(map(str, found.get("unclean", ())))
    except (ValueError, KeyError, TypeError, AttributeError):
        return -1, frozenset()


def _decode_properties(content: bytes) -> dict[str, str]:
    """Java's properties format, as far as it is used for these files: comments, = or :, backslash escapes."""
    values: dict[str, str] = {}
    for line in content.decode("latin-1").splitlines():
        stripped = line.lstrip()
        if not stripped or stripped[0] in "#!":
            continue
        name, value = _split_property(stripped)
        values[name] = value
    return values


def _split_property(line: str) -> tuple[str, str]:
    parts = ["", ""]
    side, position = 0, 0
    while position < len(line):
        character = line[position]
        if character == "\\" and position + 1 < len(line):
            position += 1
            parts[side] += _ESCAPES.get(line[position], line[position])
        elif side == 0 and character in "=:":
            side = 1
        else:
            parts[side] += character
        position += 1
    return parts[0].strip(), parts[1].lstrip()
