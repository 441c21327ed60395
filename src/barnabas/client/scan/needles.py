"""What bytes a record must contain to satisfy a condition; a batch without them is skipped before it is decoded.

The search of bytes runs at the speed of memory, decoding records does not. A needle is necessary, never sufficient:
records of a batch that contains it are still checked one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from barnabas.wire.compression import Buffer

RAW: Final = ("key", "value", "headers.")  # fields whose text is stored as it is
MEMBERS: Final = ("key.", "value.")  # members of JSON, whose text may be stored with escapes
ESCAPE: Final = b"\\u"
_PLAIN: Final = re.compile(r"[A-Za-z0-9 _.:,;@#%$!?*()=+-]+")  # characters that JSON writers do not escape
_NUMBER: Final = re.compile(r"\s*[+-]?(\d|\.\d|inf|nan).*", re.IGNORECASE | re.DOTALL)


class Needle(NamedTuple):
    data: bytes
    may_be_escaped: bool = False  # as in JSON, by \\u0000


def equal_to(subject: str, text: Any) -> frozenset[Needle]:
    """Of the condition that a field is equal to a text."""
    if not isinstance(text, str) or not any(subject.startswith(each) for each in MEMBERS):
        return part_of(subject, text)
    # A number that is written in another way is equal too.
    is_certain = _PLAIN.fullmatch(text) and not _NUMBER.fullmatch(text)
    return frozenset([Needle(text.encode(), may_be_escaped=True)]) if is_certain else frozenset()


def part_of(subject: str, text: Any) -> frozenset[Needle]:
    """Of the condition that a text is in a field; a member of JSON may be stored in another way than it is compared."""
    if subject not in RAW or not isinstance(text, str) or not text or "\ufffd" in text:
        return frozenset()  # U+FFFD stands for bytes that are no text
    return frozenset([Needle(text.encode())])


def both(one: frozenset[Needle], other: frozenset[Needle]) -> frozenset[Needle]:
    return one | other


def either(one: frozenset[Needle], other: frozenset[Needle]) -> frozenset[Needle]:
    return one & other


class Probe:
    """Whether records can be in a batch at all; ``skipped`` counts records that were never decoded."""

    def __init__(self, needles: Iterable[Needle]) -> None:
        self._needles = sorted(needles, key=lambda needle: -len(needle.data))  # the rarest first
        self.skipped = 0

    def may_match(self, payload: Buffer) -> bool:
        data = payload if isinstance(payload, bytes | bytearray) else bytes(payload)
        return all(needle.data in data or (needle.may_be_escaped and ESCAPE in data) for needle in self._needles)
