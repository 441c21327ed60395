"""One module per API, with its request and its response; a module is imported when its message is first asked for.

Share groups, streams groups, delegation tokens and telemetry are not declared. Who holds a class imports its module;
``request_of`` and ``response_of`` are for those who only hold a number, such as the listener.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message

_UNDECLARED: Final = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
}

DECLARED: Final = tuple(api_key for api_key in ApiKey if api_key not in _UNDECLARED)


@cache
def request_of(api_key: ApiKey) -> type[Message]:
    """The request of an API; LookupError if it is not declared."""
    return _class_of(api_key, "Request")


@cache
def response_of(api_key: ApiKey) -> type[Message]:
    """The response of an API; LookupError if it is not declared."""
    return _class_of(api_key, "Response")


def _class_of(api_key: ApiKey, direction: str) -> type[Message]:
    if api_key in _UNDECLARED:
        raise LookupError(f"{api_key.name} is not declared")
    name = api_key.name.title().replace("_", "") + direction
    cls: type[Message] = getattr(import_module(f"{__name__}.{api_key.name.lower()}"), name)
    return cls
