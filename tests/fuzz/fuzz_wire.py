"""Bytes from nowhere into every decoder: a message or Malformed, and a message goes the same way again.

``python tests/fuzz/fuzz_wire.py -runs=100000`` hands the choice of bytes to atheris; the unit tests call ``check`` with
seeded mutations. The first byte picks the API, the second the version and the direction, the rest is the message.
"""

from __future__ import annotations

import sys

from barnabas.model.errors import Malformed
from barnabas.wire.frame import decode_request_header, decode_response
from barnabas.wire.message import Message, decode_from, encode
from barnabas.wire.messages import declared, request_of, response_of

DECLARED = declared()


def check(data: bytes) -> None:
    if len(data) < 2:
        return
    api_key = DECLARED[data[0] % len(DECLARED)]
    cls = response_of(api_key) if data[1] & 0x80 else request_of(api_key)
    check_message(cls, cls.versions[(data[1] & 0x7F) % len(cls.versions)], data[2:])


def check_message(cls: type[Message], version: int, data: bytes) -> None:
    for read in (lambda: decode_request_header(data), lambda: decode_response(cls, version, data)):
        try:
            read()
        except Malformed:
            continue
    try:
        message, position = decode_from(cls, version, data, 0)
    except Malformed:
        return
    assert position <= len(data)
    # The bytes may differ from ours (unknown tags are dropped, varints may be padded, a null may be any negative
    # length), but what we write must be stable: compared as bytes, because not-a-number differs from itself.
    written = encode(message, version)
    again, end = decode_from(cls, version, written, 0)
    assert end == len(written)
    assert encode(again, version) == written


def main() -> None:
    import atheris

    atheris.instrument_all()
    for api_key in DECLARED:
        for cls in (request_of(api_key), response_of(api_key)):
            for version in cls.versions:
                # What was compiled at run time is not seen by instrument_all.
                cls.decoders[version] = atheris.instrument_func(cls.decoders[version])
    atheris.Setup(sys.argv, check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
