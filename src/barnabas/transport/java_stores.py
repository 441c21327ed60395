"""Key and trust stores of Java, which are not read here: recognised, and refused with the command that converts them.

Files written for Kafka name JKS or PKCS12 stores. Brokers and links read PEM, which Kafka reads too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from barnabas.model.settings import InvalidSetting

JKS: Final = "JKS"
PKCS12: Final = "PKCS12"
PEM: Final = "PEM"
STORES: Final = ("keystore", "truststore")
_SUFFIXES: Final = {".jks": JKS, ".p12": PKCS12, ".pfx": PKCS12}
_JKS_MAGIC: Final = bytes.fromhex("feedfeed")
_DER_SEQUENCE: Final = b"\x30"  # PKCS12 is DER; PEM is text


def check_stores(given: Mapping[str, str]) -> None:
    """InvalidSetting, with the command to run, if a store for all listeners or for one is Java's."""
    for name, location in given.items():
        for store in STORES:
            prefix, found, rest = name.rpartition(f"ssl.{store}.location")
            if found and not rest:
                kind = _named_kind(given, f"{prefix}ssl.{store}", location)
                if kind is not None:
                    raise InvalidSetting(f"{name}={location} is a {kind} store: {advice(store, kind, location)}")


def _named_kind(given: Mapping[str, str], store: str, location: str) -> str | None:
    kind = given.get(f"{store}.type", "").strip().upper()
    if kind:
        return kind if kind in (JKS, PKCS12) else None
    by_suffix = _SUFFIXES.get(PurePath(location).suffix.lower())
    # Kafka's default is JKS, and a PEM file has no password of its own.
    return by_suffix or (JKS if given.get(f"{store}.password") else None)


def kind_of(first_bytes: bytes) -> str | None:
    """The kind of a store by its first bytes; None for what may be PEM."""
    if first_bytes.startswith(_JKS_MAGIC):
        return JKS
    return PKCS12 if first_bytes.startswith(_DER_SEQUENCE) else None


def advice(store: str, kind: str, location: str) -> str:
    """The commands that make a PEM file of a store, and the settings that use it."""
    pem = str(PurePath(location).with_suffix(".pem"))
    if store == "truststore":
        commands = {
            JKS: f"keytool -list -rfc -keystore {location} > {pem}",
            PKCS12: f"openssl pkcs12 -in {location} -nokeys -out {pem}",
        }
    else:
        p12 = str(PurePath(location).with_suffix(".p12"))
        to_pem = "openssl pkcs12 -in {} -nodes -out {}"
        commands = {
            JKS: f"keytool -importkeystore -srckeystore {location} -destkeystore {p12} -deststoretype pkcs12 && "
            + to_pem.format(p12, pem),
            PKCS12: to_pem.format(location, pem),
        }
    return (
        f"convert it with `{commands[kind]}`, then set ssl.{store}.type=PEM and ssl.{store}.location={pem} and remove "
        f"ssl.{store}.password"
    )
