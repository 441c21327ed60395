"""Who a client is: a kind and a name, as Kafka writes them (``User:alice``).

The name of one that shows a certificate is its subject as RFC 2253 writes it, unless rules map it to another
(``ssl.principal.mapping.rules``). Signing in is ``plain``'s and ``scram``'s; what a principal may do is ``acl``'s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from barnabas.model.errors import BarnabasError
from barnabas.model.settings import InvalidSetting

USER: Final = "User"
# As the standard library gives the subject of a certificate: names that hold attributes.
Subject: TypeAlias = "Sequence[Sequence[tuple[str, str]]]"

_SHORT: Final = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
# Attributes without a keyword in RFC 2253 are written as an object identifier and the bytes of their value.
_IDENTIFIED: Final = {"emailAddress": ("1.2.840.113549.1.9.1", 0x16), "serialNumber": ("2.5.4.5", 0x13)}
_UTF8_STRING: Final = 0x0C
_SHORT_LENGTH_MAX: Final = 127
_RULE: Final = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")


class Principal(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")


class NoRuleMatches(BarnabasError):
    """A certificate whose subject no mapping rule knows: its owner cannot be named, so it is not let in."""


def parse_principal(text: str) -> Principal:
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise InvalidSetting(f"{text!r} is no principal: write it like User:alice")
    return Principal(kind, name)


def distinguished_name(subject: Subject) -> str:
    """The subject of a certificate as RFC 2253 writes it, most specific attribute first."""
    return ",".join("+".join(_attribute(name, value) for name, value in part) for part in reversed(subject))


def _attribute(name: str, value: str) -> str:
    keyword = _SHORT.get(name)
    if keyword is not None:
        return f"{keyword}={_escaped(value)}"
    identifier, tag = _IDENTIFIED.get(name, (name, _UTF8_STRING))
    return f"{identifier}=#{_encoded(value, tag).hex()}"


def _encoded(value: str, tag: int) -> bytes:
    raw = value.encode()
    if len(raw) <= _SHORT_LENGTH_MAX:
        return bytes((tag, len(raw))) + raw
    size = len(raw).to_bytes((len(raw).bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + raw


def _escaped(value: str) -> str:
    escaped = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    if escaped.endswith(" ") and len(escaped) > 1:
        escaped = escaped[:-1] + "\\ "
    return escaped


class MappingRules:
    """``ssl.principal.mapping.rules``: the first rule that matches the whole subject gives the name."""

    def __init__(self, text: str) -> None:
        self._rules = tuple(_parse_rules(text))

    def name(self, distinguished: str) -> str:
        for rule in self._rules:
            found = rule.apply(distinguished)
            if found is not None:
                return found
        raise NoRuleMatches(f"no rule of ssl.principal.mapping.rules applies to {distinguished}")


class _Rule(NamedTuple):
    pattern: re.Pattern[str] | None  # None: the subject as it is
    replacement: str = ""
    letter_case: str = ""

    def apply(self, distinguished: str) -> str | None:
        if self.pattern is None:
            return distinguished
        match = self.pattern.fullmatch(distinguished)
        if match is None:
            return None
        groups = match.groups("")

        def group(reference: re.Match[str]) -> str:
            number = int(reference[1])
            return match[0] if number == 0 else groups[number - 1] if number <= len(groups) else ""

        name = re.sub(r"\$(\d)", group, self.replacement)
        if self.letter_case == "L":
            return name.lower()
        return name.upper() if self.letter_case == "U" else name


def _parse_rules(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    position = 0
    while position < len(text):
        match = _RULE.match(text, position)
        if match is not None:
            try:
                rules.append(_Rule(re.compile(match[1]), re.sub(r"\\(.)", r"\1", match[2]), match[3]))
            except re.error as error:
                raise InvalidSetting(f"{match[0]!r}: {error}") from error
            position = match.end()
        elif text.startswith("DEFAULT", position):
            rules.append(_Rule(None))
            position += len("DEFAULT")
        else:
            raise InvalidSetting(f"{text[position:]!r} is neither DEFAULT nor RULE:pattern/replacement/[LU]")
        while position < len(text) and text[position] in ", \t\n":
            position += 1
    if not rules:
        raise InvalidSetting("at least one rule is needed; DEFAULT takes the subject as it is")
    return rules
