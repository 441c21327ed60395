"""Frames for peers that mean no good, and what they cost the broker. Shared by the tests of hostile peers."""

from __future__ import annotations

from pathlib import Path

from talk import joined

from barnabas.wire.frame import encode_request
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest

QUICK_SECONDS_MAX = 5.0


def frame_of(message: Message, version: int, *, client_id: str | None = "raw", correlation_id: int = 7) -> bytes:
    return joined(encode_request(message, version, correlation_id=correlation_id, client_id=client_id))


VERSIONS_FRAME = frame_of(ApiVersionsRequest(), 0)
METADATA_FRAME = frame_of(MetadataRequest(topics=[]), 9)


def anonymous_kib(process: int | str = "self") -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1])
    raise RuntimeError("no RssAnon")
