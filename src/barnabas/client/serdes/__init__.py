"""Objects instead of bytes: what a producer's keys and values are made of and what a consumer's become.

Each kind has a module of its own and imports what it needs when it is first used: ``plain`` and ``json`` need nothing,
``structs`` needs msgspec, ``avro`` fastavro, ``protobuf`` protobuf. ``registry`` asks a schema registry, and the three
modules ``registered_*`` write and read Confluent's wire format with it. Users import from here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from barnabas.client.serdes.avro import Avro
    from barnabas.client.serdes.json import Json
    from barnabas.client.serdes.plain import BYTES, DOUBLE, INTEGER, LONG, STR
    from barnabas.client.serdes.protobuf import Protobuf
    from barnabas.client.serdes.registered import record_name, topic_name, topic_record_name
    from barnabas.client.serdes.registered_avro import RegisteredAvro
    from barnabas.client.serdes.registered_json import RegisteredJson
    from barnabas.client.serdes.registered_protobuf import RegisteredProtobuf
    from barnabas.client.serdes.registry import Registry
    from barnabas.client.serdes.serde import NotReady, Place, Serde
    from barnabas.client.serdes.structs import Struct

__all__ = [
    "BYTES",
    "DOUBLE",
    "INTEGER",
    "LONG",
    "STR",
    "Avro",
    "Json",
    "NotReady",
    "Place",
    "Protobuf",
    "RegisteredAvro",
    "RegisteredJson",
    "RegisteredProtobuf",
    "Registry",
    "Serde",
    "Struct",
    "record_name",
    "topic_name",
    "topic_record_name",
]

_HOMES = {
    "Avro": "avro",
    "BYTES": "plain",
    "DOUBLE": "plain",
    "INTEGER": "plain",
    "Json": "json",
    "LONG": "plain",
    "NotReady": "serde",
    "Place": "serde",
    "Protobuf": "protobuf",
    "RegisteredAvro": "registered_avro",
    "RegisteredJson": "registered_json",
    "RegisteredProtobuf": "registered_protobuf",
    "Registry": "registry",
    "STR": "plain",
    "Serde": "serde",
    "Struct": "structs",
    "record_name": "registered",
    "topic_name": "registered",
    "topic_record_name": "registered",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
