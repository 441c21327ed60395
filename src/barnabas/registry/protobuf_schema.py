"""Protobuf schemas: text to descriptors by protoc, which grpcio-tools brings as a library.

A schema can import the files that its references name and those that come with protoc and the serializers
(``google/protobuf/*``, ``google/type/*``, ``confluent/*``); they are laid into a directory of their own, and no other
file is read.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2, message
from grpc_tools import protoc

from barnabas.registry.incompatibility import InvalidSchema

MAIN: Final = "schema.proto"
INCLUDED: Final = Path(protoc.__file__).with_name("_proto")
GOOGLE_TYPES: Final = "google/type"  # of the package googleapis-common-protos
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_+=@,~-][A-Za-z0-9_.+=@,~ -]*")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
# The types that Confluent's serializers import; what counts are the names and the field numbers.
CONFLUENT: Final = {
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
""",
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
}
CONFLUENT_OLD_PATH: Final = "confluent/types/decimal.proto"


class ProtobufSchema:
    """A compiled file and all that it imports."""

    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        """``references`` are texts (or descriptors in base64) by the path under which they are imported."""
        from barnabas.registry.protobuf_text import printed

        given = descriptor_of(text)
        self.text = text.strip() if given is None else printed(given)
        self.files = _compiled(self.text, references or {})
        self.file = next(each for each in self.files.file if each.name == MAIN)

    @cached_property
    def fingerprint(self) -> bytes:
        """The same for texts that mean the same."""
        plain = descriptor_pb2.FileDescriptorProto()
        plain.CopyFrom(self.file)
        plain.ClearField("name")
        plain.ClearField("source_code_info")
        return bytes(plain.SerializeToString(deterministic=True))

    @property
    def serialized(self) -> str:
        """The descriptor in base64, as the API's ``format=serialized`` has it."""
        named = descriptor_pb2.FileDescriptorProto()
        named.CopyFrom(self.file)
        named.name = "default"
        return base64.b64encode(named.SerializeToString(deterministic=True)).decode()

    def canonical(self, *, normalize: bool = False) -> str:
        from barnabas.registry.protobuf_text import printed

        return printed(self.file, self.files) if normalize else self.text


def descriptor_of(text: str) -> Any:
    """The descriptor that a text is in base64, as some serializers send it; None for the text of a file."""
    if _BASE64.fullmatch(text.strip()) is None:
        return None
    try:
        found = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text.strip(), validate=True))
    except (binascii.Error, message.DecodeError):
        return None
    return found if found.message_type or found.enum_type or found.extension else None


def _checked_path(name: str) -> str:
    segments = name.split("/")
    if not all(_SEGMENT.fullmatch(each) for each in segments) or len(name) > 500:
        raise InvalidSchema(f"the reference name {name!r} is not a path that can be imported")
    if name == MAIN:
        raise InvalidSchema(f"a reference cannot be named {MAIN!r}")
    return name


def _compiled(text: str, references: Mapping[str, str]) -> Any:
    from barnabas.registry.protobuf_text import printed

    with tempfile.TemporaryDirectory(prefix="barnabas-schema-") as directory:
        root = Path(directory)
        files = {MAIN: text}
        for name, each in references.items():
            given = descriptor_of(each)
            files[_checked_path(name)] = each if given is None else printed(given)
        for name, content in CONFLUENT.items():
            files.setdefault(name, content)
        files.setdefault(CONFLUENT_OLD_PATH, CONFLUENT["confluent/type/decimal.proto"])
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        _lay_google_types(root)
        target = root / "descriptors"
        with _errors_of_protoc() as said:
            code = protoc.main(
                ["protoc", f"-I{root}", f"-I{INCLUDED}", "--include_imports", f"--descriptor_set_out={target}", MAIN]
            )
        if code != 0 or not target.exists():
            raise InvalidSchema(_reason("".join(said).replace(f"{root}/", "")))
        return descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes())


def _lay_google_types(root: Path) -> None:
    """Make ``google/type/*.proto`` importable, unless references have files of such names."""
    found = find_spec(GOOGLE_TYPES.replace("/", "."))
    place = root / GOOGLE_TYPES
    if found is not None and found.submodule_search_locations and not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(next(iter(found.submodule_search_locations)), target_is_directory=True)


@contextmanager
def _errors_of_protoc() -> Iterator[list[str]]:
    """What the library, which is native code, writes to standard error meanwhile."""
    said: list[str] = []
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            said.append(file.read(65536).decode(errors="replace"))


def _reason(said: str) -> str:
    lines = [line for line in said.splitlines() if "warning:" not in line]
    return "; ".join(line.removeprefix(f"{MAIN}:") for line in lines)[:1000] or "protoc could not read the schema"
