"""Random instances of any declared message, and the two record codecs, for the judges of this folder.

The bytes beside these tests (``record_bytes``) are not installed anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages import declared, request_of, response_of
from barnabas.wire.schema import (
    FLOAT64,
    TAGS_OF_OURS,
    UUID,
    Array,
    Binary,
    Field,
    Fixed,
    Nested,
    RecordBytes,
    Text,
    Type,
)

sys.path[:0] = [str(Path(__file__).parent)]

RANGES = {"?": (0, 1), "b": (-128, 127), "h": (-(2**15), 2**15 - 1), "i": (-(2**31), 2**31 - 1)}
RANGES |= {"q": (-(2**63), 2**63 - 1), "H": (0, 2**16 - 1), "I": (0, 2**32 - 1)}
TEXTS = ("", "a", "topic", "straße-東京-🚀", "x" * 126, "y" * 127, "z" * 128, "w" * 300)

Choose = Callable[[type[Message], Field, Random], Any]


def choose_freely(cls: type[Message], field: Field, random: Random) -> Any:
    return None


def make(cls: type[Message], version: int, random: Random, choose: Choose = choose_freely) -> Any:
    """An instance that the version can carry; ``choose`` may pick the value of a field (None leaves it to chance)."""
    values = {}
    for field in cls.fields:
        if field.tag is not None and field.tag >= TAGS_OF_OURS and choose is not choose_freely:
            continue  # whoever chooses knows Kafka's fields alone
        if not field.is_in(version) or (field.is_tagged(version) and random.random() < 0.4):
            continue
        if field.is_nullable(version) and random.random() < 0.2:
            values[field.name] = None
            continue
        chosen = choose(cls, field, random)
        values[field.name] = _value(field.type, version, random, choose) if chosen is None else chosen
    return cls(**values)


def _value(kind: Type, version: int, random: Random, choose: Choose) -> Any:
    match kind:
        case Text():
            return random.choice(TEXTS)
        case Binary() | RecordBytes():
            return random.randbytes(random.choice((0, 1, 5, 126, 127, 128, 400)))
        case Nested(target=target):
            return make(target, version, random, choose)
        case Array(element=element):
            count = random.choice((0, 1, 1, 2, 3))
            if isinstance(element, Fixed) and random.random() < 0.1:
                count = random.choice((126, 127, 128, 200))
            return [_value(element, version, random, choose) for _ in range(count)]
        case Fixed() as fixed:
            return _fixed(fixed, random)


def _fixed(fixed: Fixed, random: Random) -> Any:
    if fixed is UUID:
        return random.choice((ZERO_UUID, Uuid(random.randbytes(16))))
    if fixed is FLOAT64:
        return random.choice((0.0, -1.5, random.random() * 1e9))
    low, high = RANGES[fixed.code]
    value = random.choice((low, high, 0, 1, random.randint(low, high)))
    return bool(value) if fixed.code == "?" else value


@pytest.fixture(scope="session")
def make_message() -> Callable[..., Any]:
    return make


def declared_messages() -> list[type[Message]]:
    from barnabas.wire.messages import consumer_protocol, envelope, raft_control

    apis = [of(api_key) for api_key in declared() for of in (request_of, response_of)]
    others = [
        value
        for module in (consumer_protocol, envelope, raft_control)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Message) and value.versions and value.api_key is None
    ]
    return apis + others


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``message_class`` runs over every declaration, and with ``version`` over every version of it."""
    if "message_class" not in metafunc.fixturenames:
        return
    classes = declared_messages()
    if "version" in metafunc.fixturenames:
        pairs = [(cls, version) for cls in classes for version in cls.versions]
        ids = [f"{cls.__name__}-v{version}" for cls, version in pairs]
        metafunc.parametrize(("message_class", "version"), pairs, ids=ids)
    else:
        metafunc.parametrize("message_class", classes, ids=[cls.__name__ for cls in classes])


@pytest.fixture(params=["compiled", "interpreted"])
def twin(request: pytest.FixtureRequest) -> Any:
    """The record codec, once as it is installed and once from its source."""
    from record_bytes import COMPILED, INTERPRETED

    if request.param == "interpreted":
        return INTERPRETED
    if not (COMPILED.codec.COMPILED and COMPILED.encoder.COMPILED):
        pytest.skip("the record codec is not compiled here")
    return COMPILED
