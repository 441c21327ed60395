"""Uuid and TopicPartition, the numbers that stand for a missing id, and the names of internal topics.

No behaviour lives here beyond reading and printing an id. Everyone imports this module; it imports nothing of ours.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple, Self

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
NO_OFFSET: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_BROKER: Final = -1

UUID_BYTES: Final = 16


class Uuid(bytes):
    """Sixteen raw bytes that print as Kafka prints them: URL-safe base64 without padding."""

    __slots__ = ()

    def __new__(cls, raw: bytes | bytearray | memoryview) -> Self:
        if len(raw) != UUID_BYTES:
            raise ValueError(f"a uuid is {UUID_BYTES} bytes, not {len(raw)}")
        return super().__new__(cls, raw)

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            return cls(urlsafe_b64decode(text + "=="))
        except ValueError as error:
            raise ValueError(f"{text!r} is not a uuid in URL-safe base64") from error

    def __str__(self) -> str:
        return urlsafe_b64encode(self).decode().rstrip("=")

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"


ZERO_UUID: Final = Uuid(bytes(16))
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")
METADATA_TOPIC: Final = "__cluster_metadata"
OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_text(data: bytes) -> str:
    """The 16 bytes of a UUID in the usual text form, ``8-4-4-4-12`` hexadecimal digits."""
    digits = data.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
