"""The audit log: one line for every administrative change and for every access that was denied.

The logger is ``barnabas.audit``. Lines contain the names of topics, groups, settings and users, never the value of a
setting and nothing of a password. An API declares with ``audit`` which resources of a request it changes; the
dispatcher calls ``changed``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from barnabas.broker.access.authorizer import Asker
from barnabas.broker.access.guarded_request import principal_of
from barnabas.broker.requests.request import Request
from barnabas.model.errors import error_of
from barnabas.observe.log import logger
from barnabas.security.acl import Operation, ResourceType
from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message

log = logger("audit")

NAMES_MAX: Final = 20  # names in one line
_CODES: Final = ("error_code", "partition_error_code")


def topics(message: Any) -> Iterable[str]:
    """The topics of a request, by name or by id."""
    return [row.name or str(row.topic_id) if hasattr(row, "topic_id") else row.name for row in message.topics]


def configs(message: Any) -> Iterable[str]:
    """The resources of a request and the names of their settings, without the values."""
    return [
        f"{row.resource_type}/{row.resource_name}:{','.join(config.name for config in row.configs)}"
        for row in message.resources
    ]


def name_of(kind: type[Operation | ResourceType], value: int) -> str:
    """The name of an operation or of a type of resource; an unknown one is its number."""
    found = kind._value2member_map_.get(value)
    return str(value) if found is None else str(found.name)


def changed(request: Request, names: list[str], response: Message | None) -> None:
    """Log a change of the named resources when it is answered, with its errors."""
    codes = sorted(code for code in _codes(response) if code)
    log.info(
        "change",
        api=ApiKey(request.header.api_key).name,
        principal=principal_of(request.broker, request.connection),
        peer=request.connection.peer[0],
        client=request.header.client_id,
        of=_joined(names),
        failed=",".join(error_of(code).name for code in codes) or "no",
    )


def refused(request: Request, asker: Asker) -> None:
    """Log the operations that a client asked for and was denied."""
    log.info(
        "access refused",
        api=ApiKey(request.header.api_key).name,
        principal=asker.principal,
        peer=asker.host,
        client=request.header.client_id,
        rights=_joined(
            [f"{name_of(Operation, each)} {name_of(ResourceType, kind)}:{name}" for each, kind, name in asker.denied]
        ),
    )


def _codes(value: Any) -> set[int]:
    """All error codes in a response, at any depth."""
    found: set[int] = set()
    if isinstance(value, list):
        for each in value:
            found |= _codes(each)
    elif isinstance(value, Message):
        fields: Iterable[str] = value.__slots__
        for field in fields:
            inner = getattr(value, field)
            if field in _CODES:
                found.add(inner)
            elif isinstance(inner, list | Message):
                found |= _codes(inner)
    return found


def _joined(names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    return " ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
